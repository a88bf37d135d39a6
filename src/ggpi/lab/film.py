"""Films, written picture by picture: only the current one is in memory."""

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ggpi.lab.cells import Metrics
from ggpi.storage.arrays import replacing


def titled(picture: np.ndarray, words: str) -> np.ndarray:
    """The picture with words in its upper left corner."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture)
    brush = ImageDraw.Draw(image)
    brush.rectangle((0, 0, 12 + 8 * len(words), 24), fill="white")
    brush.text((6, 4), words, fill="black", font_size=14)
    return np.asarray(image)


def check_film_name(path: Path) -> None:
    """Raises if a film cannot be written under this name, before any work is done for it."""
    if re.match(r"[\w+.-]{2,}:", str(path)):
        raise ValueError(
            f"{path} looks like an address, which ffmpeg would open in place of a file; name a file such as ./out.mp4"
        )
    if path.suffix != ".mp4":
        raise ValueError(f"--video writes .mp4 files, got {path}")


@contextlib.contextmanager
def film(path: Path, rate: float = 16) -> Iterator[Callable[[np.ndarray], None]]:
    """Yields a function that adds a picture [height, width, 3]; the file appears whole, at the end."""
    import imageio_ffmpeg

    writer = None
    with replacing(path) as aside:

        def add(picture: np.ndarray) -> None:
            nonlocal writer
            picture = np.ascontiguousarray(picture, np.uint8)
            if writer is None:
                height, width, _ = picture.shape
                options: Metrics = {"fps": rate, "macro_block_size": 8, "output_params": ["-f", "mp4"]}
                writer = imageio_ffmpeg.write_frames(aside.absolute(), (width, height), **options)
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
