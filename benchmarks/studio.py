"""The studio: milliseconds from a click to its new plan, the first paint, and twenty pages at once.

A click is a new formula, sent over the WebSocket; it ends when the moment with the new plan has arrived, which includes
planning, pictures and the way there and back on this machine. All plans are of depth 2 with 100 samples. `first_paint`
is what Chromium reports of the page, null where there is none. The load: pages that paint ten times a second for some
seconds, all in the same world; each frame that a page waits for counts once. Times depend on what else the machine
does: `load` is its load average before the measurement.

    python benchmarks/studio.py            writes results/studio.json
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from websockets.sync.client import connect

from ggpi.studio.protocol import read_binary

OUT = Path(__file__).parent / "results" / "studio.json"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PAINT = "const p = performance.getEntriesByName('first-contentful-paint')[0]; return p ? p.startTime : null"


@contextlib.contextmanager
def studio() -> Iterator[tuple[str, int]]:
    """The address of a studio in its own process, and the number of that process."""
    command = [sys.executable, "-m", "ggpi", "studio", "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait()


class Page:
    """A client that paints."""

    def __init__(self, address: str, world: str):
        self.stack = contextlib.ExitStack()
        there = urlsplit(address)
        link = connect(f"ws://{there.netloc}/ws?{there.query}", max_size=2**26)
        self.socket = self.stack.enter_context(link)
        self.send(type="open", world=world)
        self.moment()

    def send(self, **message: object) -> None:
        self.socket.send(json.dumps(message))

    def moment(self) -> dict:
        """The next plan."""
        while True:
            frame = self.socket.recv(timeout=600)
            if isinstance(frame, bytes) and (header := read_binary(frame)[0])["type"] == "moment":
                return header

    def click(self, i: int) -> float:
        """Milliseconds until the plan for a new reward has arrived."""
        begun = time.perf_counter()
        self.send(type="change", formula=f"disc({0.01 * i}, 0.4, 0.3)", samples=100)
        self.moment()
        return 1e3 * (time.perf_counter() - begun)


def clicks(address: str, world: str, rounds: int) -> dict[str, float]:
    """Latencies of single clicks, one after the other."""
    page = Page(address, world)
    with page.stack:
        page.click(-1)
        found = [page.click(i) for i in range(rounds)]
    return {"median_ms": statistics.median(found), "worst_ms": max(found), "least_ms": min(found)}


def crowd(address: str, world: str, pages: int, seconds: float) -> dict[str, float]:
    """Plans per second of all pages together, and how long a click takes among them."""
    ready, found = threading.Barrier(pages + 1), list[float]()
    lock = threading.Lock()

    def paint(number: int) -> None:
        page = Page(address, world)
        with page.stack:
            ready.wait()
            end, i = time.perf_counter() + seconds, 0
            while time.perf_counter() < end:
                took = page.click(100 * number + i)
                i += 1
                with lock:
                    found.append(took)
                time.sleep(max(0.1 - took / 1e3, 0.0))

    threads = [threading.Thread(target=paint, args=(number,)) for number in range(pages)]
    for thread in threads:
        thread.start()
    ready.wait()
    for thread in threads:
        thread.join()
    return {"pages": pages, "plans_per_second": len(found) / seconds, "median_ms": statistics.median(found)}


def first_paint(address: str) -> float | None:
    """Milliseconds until Chromium has painted the page; None where there is no browser."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory() as folder:
        for flag in [*FLAGS.split(), f"--user-data-dir={folder}"]:
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.get(address)
            for _ in range(100):
                if (found := browser.execute_script(PAINT)) is not None:
                    return found
                time.sleep(0.1)
            return None
        finally:
            browser.quit()


def measure(
    worlds: Sequence[str], rounds: int, pages: int, seconds: float, with_browser: bool = True
) -> dict:
    """All numbers."""
    found: dict = {"load": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}
    with studio() as (address, _):
        found["first_paint_ms"] = first_paint(address) if with_browser else None
        found["click"] = {world: clicks(address, world, rounds) for world in worlds}
        found["crowd"] = crowd(address, worlds[0], pages, seconds)
    return found


if __name__ == "__main__":
    numbers = measure(("point-mass", "maze", "ant", "four-rooms"), rounds=30, pages=20, seconds=15)
    OUT.write_text(json.dumps(numbers, indent=1) + "\n")
    print(json.dumps(numbers, indent=1))
