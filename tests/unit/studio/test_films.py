"""Films: a GIF of the page becomes an MP4, for pages of this server only."""

import io
import socket
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from ggpi.studio import films

from .conftest import PATIENCE, TOKEN, running

Image = pytest.importorskip("PIL.Image", reason="films need Pillow")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="films need imageio-ffmpeg, of the extra ant")


def gif(count=5, width=50, height=38):
    """Pictures that differ, of odd sizes."""
    rng, file = np.random.default_rng(0), io.BytesIO()
    pictures = [Image.fromarray(rng.integers(0, 255, (height, width, 3), np.uint8)) for _ in range(count)]
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=100)
    return file.getvalue()


def post(port, body, token=TOKEN, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/film?token={token}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_gif_becomes_an_mp4(port, tmp_path):
    status, found = post(port, gif())
    assert status == 200 and found[4:8] == b"ftyp"
    (tmp_path / "film.mp4").write_bytes(found)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "film.mp4"))
    assert count == 5 and seconds == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(
    "body", [b"", b"GIF89a", b"\x89PNG\r\n", gif()[:60], b"#EXTM3U\nfile:///etc/passwd\n"]
)
def test_other_bytes_are_rejected(port, body):
    assert post(port, body)[0] == 422


def test_pages_of_other_sites_get_no_films(port):
    assert post(port, gif(), token="wrong")[0] == 403
    assert post(port, gif(), Origin="http://evil.example")[0] == 403
    assert post(port, gif(), Host="evil.example")[0] == 421


def test_large_films_are_rejected(port, monkeypatch):
    with pytest.raises(ValueError, match="at most"):
        films.mp4(gif(films.MOST_PICTURES + 1, 8, 8))
    monkeypatch.setattr(films, "LARGEST", 1_000)
    assert post(port, gif())[0] == 413


def test_without_the_encoder_it_says_so(port, monkeypatch):
    monkeypatch.setattr(films, "is_possible", lambda: False)
    status, words = post(port, gif())
    assert status == 501 and b"pip install imageio-ffmpeg" in words


def test_only_so_many_films_are_received_at_once(monkeypatch):
    """One more is turned away, and there is room again once the page of the first one has gone."""
    monkeypatch.setattr(films, "MOST_FILMS", 1)
    with running() as port:
        with socket.create_connection(("127.0.0.1", port)) as slow:
            head = (
                f"POST /film?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n\r\nGIF"
            )
            slow.sendall(head.encode())
            answers = (post(port, b"no GIF") for _ in range(1_000))  # until the slow one has been seen
            assert next(words for status, words in answers if status == 503).startswith(b"other films")
        while (answer := post(port, b"no GIF"))[0] == 503:
            time.sleep(0.01)
        assert answer[0] == 422
