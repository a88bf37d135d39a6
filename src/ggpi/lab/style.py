"""How figures look: one palette, calm axes, maps of gridworlds. Matplotlib's objects, never pyplot."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

# Paul Tol's "bright" scheme: safe for colour-blind readers, in print and on screen.
PALETTE = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377")
BLUE, RED, GREEN, YELLOW, CYAN, PURPLE = PALETTE
INK, GREY, WALL, FLOOR = "#333333", "#BBBBBB", "#555555", "#FFFFFF"
MARKED, GOAL = "#A9D3EE", "#123F6D"  # the light and dark blue of the paper's Figure 3


def figure(rows: int = 1, columns: int = 1, size: Sequence[float | int] = (4, 3), **options: Any):
    """A figure and its array of axes, each of `size` inches: `[rows, columns]`, always two-dimensional."""
    canvas = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(GREY)
        ax.tick_params(color=GREY, labelcolor=INK, labelsize=8)
        ax.set_prop_cycle(color=PALETTE)
    return canvas, axes


def plain_log(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis: at powers of ten, more of them the shorter it is."""
    low, high = axis.get_view_interval()
    subs = range(1, 10) if high < 5 * low else (1, 2, 5) if high < 1000 * low else (1,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_locator(NullLocator())


def grid_map(
    ax: Axes, cells: Sequence[Sequence[int]], colours: Mapping[tuple[int, int], str], title: str = ""
):
    """Draws a gridworld: `cells` are the (row, col) of its floor, `colours` paints some of them."""
    places = np.asarray(cells, int)
    rows, columns = places.max(axis=0) + 2
    image = np.full((rows, columns, 3), to_rgb(WALL))
    image[tuple(places.T)] = to_rgb(FLOOR)
    for place, colour in colours.items():
        image[tuple(place)] = to_rgb(colour)
    ax.imshow(image, interpolation="nearest")
    ax.set_xticks(np.arange(columns + 1) - 0.5, [])
    ax.set_yticks(np.arange(rows + 1) - 0.5, [])
    ax.grid(color=GREY, linewidth=0.4)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title, fontsize=9, color=INK)


def depth_name(depth: int | str) -> str:
    """depth 1 (GPI), depth 2, …"""
    return "depth 1 (GPI)" if str(depth) == "1" else f"depth {depth}"
