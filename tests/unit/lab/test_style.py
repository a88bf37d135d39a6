import numpy as np
from matplotlib.colors import to_rgb

from ggpi.lab import style


def test_axes_are_two_dimensional():
    canvas, axes = style.figure(1, 3, size=(2, 1))
    assert axes.shape == (1, 3) and tuple(canvas.get_size_inches()) == (6, 1)


def test_map_has_walls_floor_and_colours():
    _, axes = style.figure()
    style.grid_map(axes[0, 0], [(1, 1), (1, 2), (2, 1)], {(1, 2): style.GOAL}, "map")
    (image,) = axes[0, 0].get_images()
    pixels = np.asarray(image.get_array())
    assert pixels.shape == (4, 4, 3)
    np.testing.assert_allclose(pixels[1, 2], to_rgb(style.GOAL))
    np.testing.assert_allclose(pixels[1, 1], to_rgb(style.FLOOR))
    np.testing.assert_allclose(pixels[2, 2], to_rgb(style.WALL))
