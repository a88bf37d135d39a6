"""The studio: milliseconds from a click to its new plan, the first paint, the ant's frames, and twenty pages at once.

A click is a new formula, sent over the WebSocket; it ends when the moment with the new plan has arrived, which includes
planning, pictures and the way there and back on this machine. `beside` is the same while another page plays at full
speed and reads nothing. All plans are of depth 2 with 100 samples.

`pointer`: a pointer event in Chromium, on the map of the maze, whose models are a one-pass student, until the frame
after the one in which the new plan was drawn.

`page`: Chromium opens the page as soon as the server has printed its address. `paint_ms` is the first contentful paint,
`map_ms` until the map with its reward is there to be painted on, `plan_ms` until the first plan, whose programs are
compiled meanwhile. `ant`: frames per second of the ant while it plays in real time and plans at every step,
drawn without a graphics card by the same processor, and simulated seconds per second. Both are null without a browser.

The load: pages that paint ten times a second for some seconds, all in the same world; each frame that a page waits for
counts once. In the end all of them vanish without a farewell while they play at full speed, and `planners_end_s` is how
long the last planner lives on. Times depend on what else the machine does: `load` is its load average before each
part of the measurement, and `nice` the priority of the browser and the studio: below 0, others hardly count.

    python benchmarks/studio.py                    writes results/studio.json
    python benchmarks/studio.py pointer beside     measures some parts of it again
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
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


POINTER = """
const map = studio.maps[0], before = studio.agents[0].moments.at(-1);
studio.shapes.length = 0;
globalThis.seen = new Promise((resolve) => {
  let begun = null;
  map.canvas.addEventListener("pointerup", ({ timeStamp }) => { begun = timeStamp; }, { once: true, capture: true });
  map.paint = (...parts) => {
    Object.getPrototypeOf(map).paint.apply(map, parts);
    if (begun === null || !map.scene.moment || map.scene.moment === before) return;
    delete map.paint;
    requestAnimationFrame(() => resolve(performance.now() - begun));
  };
});
const { left, top } = map.canvas.getBoundingClientRect(), [x, y] = map.toScreen(arguments[0]);
return [left + x * map.factor, top + y * map.factor];"""


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
    return latencies(found)


def latencies(found: Sequence[float]) -> dict[str, float]:
    """The median, the 95th percentile and the ends of some times."""
    p95 = sorted(found)[min(math.ceil(0.95 * len(found)), len(found)) - 1]
    return {
        "median_ms": statistics.median(found),
        "p95_ms": p95,
        "worst_ms": max(found),
        "least_ms": min(found),
    }


def beside(address: str, world: str, rounds: int) -> dict[str, float]:
    """Latencies of single clicks beside a page that plays at full speed and reads nothing."""
    deaf = Page(address, world)
    with deaf.stack:
        deaf.send(type="change", speed=0, repeat=True)
        deaf.send(type="play")
        time.sleep(1.0)
        return clicks(address, world, rounds)


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
    return {"pages": pages, "plans_per_second": len(found) / seconds, **latencies(found)}


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
    while not chromium.execute_script("return Boolean(studio.body?.parts)"):
        time.sleep(0.1)
    return chromium.execute_async_script(PLAY, seconds)


def pointer(chromium: WebDriver, address: str, rounds: int) -> dict[str, float]:
    """Milliseconds from a click on the map of the maze to the pixels of its plan."""
    chromium.get("about:blank")
    chromium.get(f"{address}#world=maze&depth=2&samples=100")
    chromium.execute_async_script(WHEN)
    found = []
    for i in range(rounds + 1):
        x, y = chromium.execute_script(POINTER, [0.02 * i, 0.5])
        about = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            chromium.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, **about})
        found.append(chromium.execute_async_script("seen.then(arguments[0])"))
        time.sleep(0.2)
    return latencies(found[1:])


@dataclass(frozen=True)
class Sizes:
    """How long everything is measured."""

    worlds: tuple[str, ...] = ("point-mass", "maze", "ant", "four-rooms")
    rounds: int = 40
    pages: int = 20
    seconds: float = 15.0
    has_browser: bool = True


def measure(sizes: Sizes, only: Sequence[str] = ()) -> dict:
    """All numbers, or some parts of them."""
    found: dict = {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    }
    with browser() if sizes.has_browser else contextlib.nullcontext() as chromium, studio() as (address, _):
        parts: dict[str, Callable[[], Any]] = {
            "page": lambda: chromium and first_page(chromium, address),
            "pointer": lambda: chromium and pointer(chromium, address, sizes.rounds),
            "ant": lambda: chromium and ant(chromium, address, sizes.seconds),
            "click": lambda: {world: clicks(address, world, sizes.rounds) for world in sizes.worlds},
            "beside": lambda: {world: beside(address, world, sizes.rounds) for world in sizes.worlds[:1]},
            "crowd": lambda: crowd(address, sizes.worlds[0], sizes.pages, sizes.seconds),
            "vanished": lambda: {"planners_end_s": vanish(address, sizes.worlds[0], sizes.pages)},
        }
        for name in only or parts:
            if chromium and name not in ("page", "pointer", "ant"):
                chromium.get("about:blank")
            busy = {"load": round(os.getloadavg()[0], 1), "nice": os.getpriority(os.PRIO_PROCESS, 0)}
            numbers = parts[name]()
            found[name] = numbers and {**busy, **numbers}
    return found


if __name__ == "__main__":
    only = sys.argv[1:]
    numbers = (json.loads(OUT.read_text()) if only else {}) | measure(Sizes(), only)
    OUT.write_text(json.dumps(numbers, indent=1) + "\n")
    print(json.dumps(numbers, indent=1))
