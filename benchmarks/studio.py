"""The studio: milliseconds from a click to its new plan, the first paint, the ant's frames, and twenty pages at once.

A click is a new formula, sent over the WebSocket; it ends when the moment with the new plan has arrived, which includes
planning, pictures and the way there and back on this machine. All plans are of depth 2 with 100 samples.

`page`: Chromium opens the page as soon as the server has printed its address. `paint_ms` is the first contentful paint,
`map_ms` until the map with its reward is there to be painted on, `plan_ms` until the first plan, whose programs are
compiled meanwhile. `ant`: frames per second of the ant while it plays in real time and plans at every step,
drawn without a graphics card by the same processor, and simulated seconds per second. Both are null without a browser.

The load: pages that paint ten times a second for some seconds, all in the same world; each frame that a page waits for
counts once. In the end all of them vanish without a farewell while they play at full speed, and `planners_end_s` is how
long the last planner lives on. Times depend on what else the machine does: `load` is its load average before the
measurement.

    python benchmarks/studio.py            writes results/studio.json
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import urlopen

from websockets.sync.client import connect

from ggpi.studio.protocol import read_binary

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

OUT = Path(__file__).parent / "results" / "studio.json"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-unsafe-swiftshader"
)
WHEN = """
const done = arguments[0], found = {};
(function look() {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  if (paint) found.paint_ms = paint.startTime;
  if (globalThis.studio?.world && studio.maps[0].scene.shapes.length) found.map_ms ??= performance.now();
  if (globalThis.studio?.agents[0]?.moments?.length) found.plan_ms ??= performance.now();
  if (Object.keys(found).length === 3) done(found); else requestAnimationFrame(look);
})()"""
PLAY = """
const [seconds, done] = arguments, { body } = studio, render = body.render.bind(body);
let frames = 0;
body.render = () => { frames += 1; render(); };
document.getElementById("play").click();
const step = () => studio.agents[0].moments.at(-1).t;
setTimeout(() => {
  const [before, first] = [frames, step()];
  setTimeout(() => done({ frames_per_second: (frames - before) / seconds,
    seconds_per_second: (step() - first) * studio.world.seconds / seconds }), 1000 * seconds);
}, 2000);"""


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
        self.stack, self.world = contextlib.ExitStack(), world
        there = urlsplit(address)
        link = connect(f"ws://{there.netloc}/ws?{there.query}", max_size=2**26, ping_interval=None)
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


def vanish(address: str, world: str, pages: int) -> float:
    """Seconds until the last planner ends, after pages that play at full speed are cut off."""
    there = urlsplit(address)
    found = [Page(address, world) for _ in range(pages)]
    for page in found:
        page.send(type="change", speed=0, repeat=True)
        page.send(type="play")
    for page in found:
        page.moment()
    for page in found:
        page.socket.socket.shutdown(socket.SHUT_RDWR)  # no farewell
    begun = time.perf_counter()
    while json.load(urlopen(f"http://{there.netloc}/health"))["planners"]:
        time.sleep(0.02)
    return time.perf_counter() - begun


@contextlib.contextmanager
def browser() -> Iterator[WebDriver | None]:
    """Debian's Chromium without a window; None where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        yield None
        return
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory() as folder:
        for flag in [*FLAGS.split(), f"--user-data-dir={folder}"]:
            options.add_argument(flag)
        found = webdriver.Chrome(options=options, service=Service(driver))
        found.set_script_timeout(300)
        found.set_window_size(1280, 800)
        try:
            yield found
        finally:
            found.quit()


def first_page(chromium: WebDriver, address: str) -> dict[str, float]:
    """Milliseconds from the request of the page."""
    chromium.get(address)
    return chromium.execute_async_script(WHEN)


def ant(chromium: WebDriver, address: str, seconds: float) -> dict[str, float]:
    """Frames of the ant while it plans."""
    chromium.get("about:blank")
    chromium.get(f"{address}#world=ant&reward=disc(4,4,0.3)&depth=2&samples=100")
    chromium.execute_async_script(WHEN)
    return chromium.execute_async_script(PLAY, seconds)


def measure(
    worlds: Sequence[str], rounds: int, pages: int, seconds: float, with_browser: bool = True
) -> dict:
    """All numbers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict = {"load": round(os.getloadavg()[0], 1), "cores": cores}
    with browser() if with_browser else contextlib.nullcontext() as chromium, studio() as (address, _):
        found["page"] = chromium and first_page(chromium, address)
        found["ant"] = chromium and ant(chromium, address, seconds)
        if chromium:
            chromium.get("about:blank")
        found["click"] = {world: clicks(address, world, rounds) for world in worlds}
        found["crowd"] = crowd(address, worlds[0], pages, seconds)
        found["planners_end_s"] = vanish(address, worlds[0], pages)
    return found


if __name__ == "__main__":
    numbers = measure(("point-mass", "maze", "ant", "four-rooms"), rounds=30, pages=20, seconds=15)
    OUT.write_text(json.dumps(numbers, indent=1) + "\n")
    print(json.dumps(numbers, indent=1))
