"""Episodes as MP4: the page draws pictures, this process encodes them. The package imageio-ffmpeg has the encoder."""

from __future__ import annotations

import io
import tempfile
import threading
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ggpi.lab.film import film

LARGEST = 2**24
"""Bytes of the pictures that a page may send."""
MOST_PICTURES, MOST_PIXELS = 200, 2**21
ONE = threading.Lock()
"""One film at a time."""


def is_possible() -> bool:
    """Whether films can be made here."""
    return find_spec("imageio_ffmpeg") is not None and find_spec("PIL") is not None


def mp4(pictures: bytes) -> bytes:
    """A GIF as MP4; raises ValueError for what is not a GIF of moderate size."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            image = Image.open(io.BytesIO(pictures), formats=["GIF"])
            count = getattr(image, "n_frames", 1)
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombWarning) as error:
            raise ValueError("the pictures are not a GIF") from error
    if count > MOST_PICTURES or image.width * image.height > MOST_PIXELS:
        raise ValueError(f"a film has at most {MOST_PICTURES} pictures of {MOST_PIXELS} pixels")
    pause = max(image.info.get("duration", 0), 20)
    with ONE, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episode.mp4"
        with film(path, 1000 / pause) as add:
            for i in range(count):
                image.seek(i)
                add(_even(np.asarray(image.convert("RGB"))))
        return path.read_bytes()


def _even(picture: np.ndarray) -> np.ndarray:
    """With sides that are multiples of eight, as the encoder needs them."""
    height, width, _ = picture.shape
    return np.pad(picture, ((0, -height % 8), (0, -width % 8), (0, 0)), mode="edge")
