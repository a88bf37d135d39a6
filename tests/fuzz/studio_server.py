"""Messages near the protocol, sent to a studio in a process of its own, by pages that come and vanish.

    python tests/fuzz/studio_server.py --cases 100000

Each page opens four rooms and sends texts of `tests/fuzz/studio.py` as fast as it can, until the server closes it for
its rate or it has sent its share; every second one vanishes without a farewell. Some frames are bytes, some are too
long. At the end the process is the same one, has printed no traceback, has no planner left and plans for a new page.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from studio import make
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

PAGES, SHARE = 4, 100
"""Pages at the same time, and messages of each; the server closes those that send twice as many at once."""

SERVE = """
import faulthandler, signal
from ggpi.cli.main import main

faulthandler.register(signal.SIGUSR1, all_threads=True)
main(["studio", "--no-open"])
"""
"""A studio that writes the stacks of its threads when it gets a signal."""


class Studio:
    """A studio in its own process."""

    def __init__(self, errors: Path):
        self.errors = errors
        command = [sys.executable, "-c", SERVE]
        with errors.open("w") as file:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
        assert self.process.stdout is not None
        self.address = urlsplit(self.process.stdout.readline().strip())

    def page(self) -> ClientConnection:
        return connect(
            f"ws://{self.address.netloc}/ws?{self.address.query}", max_size=2**26, close_timeout=0.2
        )

    @property
    def health(self) -> dict:
        return json.load(urlopen(f"http://{self.address.netloc}/health", timeout=60))

    @property
    def answers(self) -> bool:
        try:
            return self.health["status"] == "ok"
        except OSError:
            return False


def visit(studio: Studio, rng: np.random.Generator, share: int) -> int:
    """One page; returns how many messages it has sent."""
    sent = 0
    with studio.page() as page:
        try:
            page.send('{"type": "open", "world": "four-rooms"}')
            while sent < share:
                page.send(message(rng))
                sent += 1
            if rng.random() < 0.5:
                page.socket.shutdown(socket.SHUT_RDWR)
            elif rng.random() < 0.1:
                page.send("x" * 20_000)
        except (ConnectionClosed, OSError):
            pass
    return sent


def visited(studio: Studio, rng: np.random.Generator, share: int) -> int:
    """The same, 0 where the studio does not answer."""
    try:
        return visit(studio, rng, share)
    except (OSError, WebSocketException):
        return 0


def message(rng: np.random.Generator) -> str | bytes:
    """A text near the protocol, sometimes as bytes."""
    text = make(rng, Path())
    return text.encode() if rng.random() < 0.02 else text


def attack(studio: Studio, cases: int, seed: int) -> int:
    """Many pages; returns how many messages they have sent."""
    sent, lock = 0, threading.Lock()

    def run(number: int) -> None:
        nonlocal sent
        rng = np.random.default_rng((seed, number))
        while sent < cases:
            if not (found := visited(studio, rng, 2 * SHARE if rng.random() < 0.1 else SHARE)):
                return
            with lock:
                sent += found

    threads = [threading.Thread(target=run, args=(number,)) for number in range(PAGES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sent


def planners_left(studio: Studio, patience: float = 120.0) -> int:
    """How many planners live on without pages."""
    end = time.monotonic() + patience
    while (left := studio.health["planners"]) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def plans(studio: Studio) -> bool:
    """Whether a new page still gets a plan."""
    with studio.page() as page:
        page.send('{"type": "open", "world": "four-rooms"}')
        while not isinstance(frame := page.recv(timeout=300), bytes):
            pass
    return b'"moment"' in frame or b'"rewards"' in frame


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, help="start no more messages after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the summary here as well")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        studio = Studio(Path(folder) / "errors.txt")
        try:
            sent = 0
            while sent < options.cases and time.monotonic() - begun < (options.seconds or np.inf):
                before = sent
                sent += attack(studio, min(2_000, options.cases - sent), options.seed + sent)
                if sent == before or not studio.answers:
                    studio.process.send_signal(signal.SIGUSR1)
                    time.sleep(2)
                    break
                print(f"{sent} messages in {time.monotonic() - begun:.0f} s", flush=True)
            answers = studio.answers
            left, is_planning = (planners_left(studio), plans(studio)) if answers else (-1, False)
            is_alive = studio.process.poll() is None
        finally:
            studio.process.terminate()
            studio.process.wait()
        printed = studio.errors.read_text("utf-8", "replace")
    took = time.monotonic() - begun
    print(
        f"{sent} messages in {took:.0f} s: planners left {left}, still plans: {is_planning}, alive: {is_alive}"
    )
    print(printed[-20_000:], end="")
    found = {"messages": sent, "seconds": round(took), "planners_left": left, "still_plans": is_planning}
    found |= {"is_alive": is_alive, "tracebacks": printed.count("Traceback")}
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if is_alive and is_planning and not left and not found["tracebacks"] else 1


if __name__ == "__main__":
    sys.exit(main())
