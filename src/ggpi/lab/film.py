"""Films, picture by picture: nothing but the current one is kept in memory."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ggpi import io


def titled(picture: Any, words: str) -> np.ndarray:
    """The picture with words in its upper left corner."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture)
    brush = ImageDraw.Draw(image)
    brush.rectangle((0, 0, 12 + 8 * len(words), 24), fill="white")
    brush.text((6, 4), words, fill="black", font_size=14)
    return np.asarray(image)


@contextlib.contextmanager
def film(path: Path, rate: float = 16) -> Iterator[Callable[[Any], None]]:
    """Yields a function that adds a picture [height, width, 3]; the file appears whole, at the end."""
    import imageio_ffmpeg

    writer = None
    with io.replacing(path) as aside:

        def add(picture: Any) -> None:
            nonlocal writer
            picture = np.ascontiguousarray(picture, np.uint8)
            if writer is None:
                height, width, _ = picture.shape
                options: dict[str, Any] = {"fps": rate, "macro_block_size": 8, "output_params": ["-f", "mp4"]}
                writer = imageio_ffmpeg.write_frames(aside, (width, height), **options)
                with warnings.catch_warnings():
                    # JAX warns of forks, but ffmpeg is started at once
                    warnings.simplefilter("ignore", RuntimeWarning)
                    writer.send(None)
            writer.send(picture.tobytes())

        try:
            yield add
        finally:
            if writer is not None:
                writer.close()
