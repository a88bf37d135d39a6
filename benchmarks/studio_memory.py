"""The studio's memory while pages paint, play, ask, and come and go.

Each page opens a world, paints a reward now and then, changes depth, planner and γ, plays, asks why, and leaves
after a while for a new page, every second time without a farewell. `planners_end_s` is how long after the last page the
last planner lives on, and `planners_left` how many live ten minutes later. The resident memory of the server (RSS, of
Linux's /proc) is noted every few seconds: `third_quarter_mb` and `last_quarter_mb` are means, when worlds are loaded
and as many programs compiled as are kept. It goes up and down by what compilers need.

    python benchmarks/studio_memory.py --minutes 30 --pages 4           writes results/studio-memory.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from studio import Page, studio
from websockets.exceptions import WebSocketException

from ggpi.studio.decisions import PLANNERS
from ggpi.studio.protocol import read_binary

OUT = Path(__file__).parent / "results" / "studio-memory.json"
WORLDS = ("four-rooms", "point-mass", "maze")
FREE = ("four-rooms", "maze")
"""Those whose γ can be changed."""
STAY = 90.0
"""Seconds that a page is open in the mean."""


def visit(address: str, rng: random.Random, end: float, counts: dict[str, int]) -> None:
    """One page from its opening to its end."""
    page = Page(address, rng.choice(WORLDS))
    until = min(end, time.monotonic() + rng.expovariate(1 / STAY))
    with page.stack:
        page.send(type="change", speed=1.0, repeat=True, second=rng.choice([-1, 1]), depth=rng.choice([1, 2]))
        page.send(type="play")
        while time.monotonic() < until:
            x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
            page.send(type="change", formula=f"disc({x:.3f}, {y:.3f}, 0.3) - 0.1*abs(x)")
            counts["paintings"] += 1
            if rng.random() < 0.1:
                page.send(type=rng.choice(["reset", "pause", "step"]))
            if rng.random() < 0.05:
                page.send(type="explain", agent=0, t=0)
            if rng.random() < 0.03:
                page.send(type="change", planner=rng.choice(PLANNERS))
            if rng.random() < 0.02 and page.world in FREE:
                page.send(type="change", gamma=rng.uniform(0.8, 0.95))
            page.send(type="play")
            counts["moments"] += watch(page, rng.uniform(0.5, 4.0))
        if rng.random() < 0.5:
            page.socket.socket.shutdown(socket.SHUT_RDWR)  # vanishes without a farewell
    counts["visits"] += 1


def watch(page: Page, seconds: float) -> int:
    """How many moments come in some seconds; they end where an error has stopped the agents."""
    end, count = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        try:
            frame = page.socket.recv(timeout=left)
        except TimeoutError:
            break
        count += isinstance(frame, bytes) and read_binary(frame)[0]["type"] == "moment"
    return count


def resident(process: int) -> float:
    """Megabytes of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def measure(minutes: float, pages: int, every: float) -> dict:
    """The memory over time, and how much was done meanwhile."""
    counts, rows = dict.fromkeys(("visits", "paintings", "moments", "errors"), 0), list[tuple[float, float]]()
    with studio() as (address, process):
        begun = time.monotonic()
        end = begun + 60 * minutes

        def come_and_go(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < end:
                try:
                    visit(address, rng, end, counts)
                except (OSError, TimeoutError, AssertionError, WebSocketException) as error:
                    counts["errors"] += 1
                    print(f"{type(error).__name__}: {error}", file=sys.stderr)

        threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(pages)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert urlopen(health_of(address), timeout=60).status == 200  # the server lives
            rows.append((time.monotonic() - begun, resident(process)))
            time.sleep(every)
        ends = {"load": round(os.getloadavg()[0], 1), **planners_end(address)}
    return {"minutes": minutes, "pages": pages, **counts, **ends, **summary(rows)}


def health_of(address: str) -> str:
    return f"http://{urlsplit(address).netloc}/health"


def planners_end(address: str, patience: float = 600.0) -> dict[str, float]:
    """How long planners live on without pages, and how many are left."""
    begun = time.monotonic()
    while (
        left := json.load(urlopen(health_of(address)))["planners"]
    ) and time.monotonic() < begun + patience:
        time.sleep(0.5)
    return {"planners_end_s": round(time.monotonic() - begun, 1), "planners_left": left}


def summary(rows: list[tuple[float, float]]) -> dict:
    """The curve in minutes and megabytes, and its means in the second half."""
    at, memory = np.array(rows).T
    quarter = np.minimum(4 * at / max(at[-1], 1e-9), 3).astype(int)
    means = [
        float(memory[quarter == k].mean()) if (quarter == k).any() else float(memory[-1]) for k in (2, 3)
    ]
    curve = [[round(t / 60, 1), round(m)] for t, m in rows]
    return {
        "third_quarter_mb": round(means[0]),
        "last_quarter_mb": round(means[1]),
        "most_mb": round(float(memory.max())),
        "curve": curve[:: max(len(curve) // 120, 1)],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pages", type=int, default=4)
    options = parser.parse_args()
    numbers = measure(options.minutes, options.pages, every=5)
    OUT.write_text(json.dumps(numbers) + "\n")
    print({name: value for name, value in numbers.items() if name != "curve"})
