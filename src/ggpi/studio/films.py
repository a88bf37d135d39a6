"""Episodes as MP4: the page draws pictures, this process encodes them. The package imageio-ffmpeg has the encoder."""

from __future__ import annotations

import io
import tempfile
import threading
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from ggpi.lab.film import film

LARGEST = 2**24
"""Bytes of the pictures that a page may send."""
MOST_PICTURES, MOST_PIXELS = 200, 2**21
MOST_FILMS = 4
"""At a time: each holds its pictures in memory."""
ONE = threading.Lock()
"""One is encoded at a time."""


class Films:
    """Films for the pages of a server, a few at a time."""

    def __init__(self):
        self.count = 0
        """That are received or made now."""

    async def answer(self, request: Request) -> Response:
        """The pictures of a request as MP4, or why not."""
        if self.count >= MOST_FILMS:
            return PlainTextResponse("other films are being made: try again in a moment\n", 503)
        self.count += 1
        try:
            return await _answer(request)
        except ClientDisconnect:
            return Response(status_code=499)
        finally:
            self.count -= 1


async def _answer(request: Request) -> Response:
    pictures = bytearray()
    async for part in request.stream():
        pictures += part
        if len(pictures) > LARGEST:
            return PlainTextResponse(f"a film has at most {LARGEST} bytes\n", 413)
    if not is_possible():
        return PlainTextResponse("films need a package: pip install imageio-ffmpeg\n", 501)
    try:
        return Response(await run_in_threadpool(mp4, bytes(pictures)), media_type="video/mp4")
    except ValueError as error:
        return PlainTextResponse(f"{error}\n", 422)


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
