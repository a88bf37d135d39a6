"""The studio's memory while pages paint, play, ask, and come and go, in two phases of one server.

`painting`: each page opens a world, has a second agent, paints a reward now and then, plays, asks why, and leaves after
a while for a new page, every second time without a farewell. `changing`: the same, and pages also change depth, planner
and γ, each of which compiles programs. The server keeps a bounded number of them, and of agents.

The resident memory of the server (RSS, of Linux's /proc) is noted every few seconds: the curve has minutes, megabytes,
agents and programs. Memory goes up and down by what compilers need, up to 1 GB for a search: `thirds_mb` are means over
the thirds of a phase. A planner whose page has gone ends after the program that it compiles, as compilers cannot stop.
`planners_end_s` is how long after the last page the last planner lives on, and `planners_left` how many live ten
minutes later. `load` is the load average at the end of each phase.

    python benchmarks/studio_memory.py --minutes 15 --pages 4           writes results/studio-memory.json
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
from dataclasses import dataclass, field
from functools import partial
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


@dataclass
class Phase:
    """What pages do until when, and how much of it they have done."""

    end: float
    is_changing: bool
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("visits", "paintings", "changes", "moments", "errors"), 0)
    )


def visit(address: str, rng: random.Random, phase: Phase) -> None:
    """One page from its opening to its end."""
    page = Page(address, rng.choice(WORLDS))
    until = min(phase.end, time.monotonic() + rng.expovariate(1 / STAY))
    with page.stack:
        page.send(type="change", speed=1.0, repeat=True, second=1)
        page.send(type="play")
        while time.monotonic() < until:
            x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
            page.send(type="change", formula=f"disc({x:.3f}, {y:.3f}, 0.3) - 0.1*abs(x)")
            phase.counts["paintings"] += 1
            if rng.random() < 0.1:
                page.send(type=rng.choice(["reset", "pause", "step"]))
            if rng.random() < 0.05:
                page.send(type="explain", agent=0, t=0)
            if phase.is_changing and rng.random() < 0.1:
                page.send(type="change", **change(page, rng))
                phase.counts["changes"] += 1
            page.send(type="play")
            phase.counts["moments"] += watch(page, rng.uniform(0.5, 4.0))
        if rng.random() < 0.5:
            page.socket.socket.shutdown(socket.SHUT_RDWR)  # vanishes without a farewell
    phase.counts["visits"] += 1


def change(page: Page, rng: random.Random) -> dict[str, object]:
    """Another planner, depth or γ."""
    kind = rng.choice(["planner", "depth", "gamma" if page.world in FREE else "depth"])
    values = {"planner": rng.choice(PLANNERS), "depth": rng.choice([1, 2]), "gamma": rng.uniform(0.8, 0.95)}
    return {kind: values[kind]}


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
    with studio() as (address, process):
        found = {
            name: observe(address, process, pages, every, Phase(time.monotonic() + 60 * minutes, is_changing))
            for name, is_changing in (("painting", False), ("changing", True))
        }
        ends = planners_end(address)
    return {"minutes": 2 * minutes, "pages": pages, **ends, "phases": found}


def observe(address: str, process: int, pages: int, every: float, phase: Phase) -> dict:
    """One phase: pages that come and go, and the memory meanwhile."""
    begun, rows = time.monotonic(), list[list[float]]()
    come_and_go = partial(visits, address, phase)
    threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(pages)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        health = json.load(urlopen(health_of(address), timeout=600))
        rows.append([time.monotonic() - begun, resident(process), health["agents"], health["programs"]])
        time.sleep(every)
    return {"load": round(os.getloadavg()[0], 1), **phase.counts, **summary(rows)}


def visits(address: str, phase: Phase, number: int) -> None:
    """One page after the other, until the phase ends."""
    rng = random.Random(number)
    while time.monotonic() < phase.end:
        try:
            visit(address, rng, phase)
        except (OSError, TimeoutError, AssertionError, WebSocketException) as error:
            phase.counts["errors"] += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr)


def health_of(address: str) -> str:
    return f"http://{urlsplit(address).netloc}/health"


def planners_end(address: str, patience: float = 600.0) -> dict[str, float]:
    """How long planners live on without pages, and how many are left."""
    begun = time.monotonic()
    while (
        left := json.load(urlopen(health_of(address), timeout=600))["planners"]
    ) and time.monotonic() < begun + patience:
        time.sleep(0.5)
    return {"planners_end_s": round(time.monotonic() - begun, 1), "planners_left": left}


def summary(rows: list[list[float]]) -> dict:
    """The curve in minutes, megabytes, agents and programs, and its means over thirds."""
    table = np.array(rows)
    third = np.minimum(3 * table[:, 0] / max(table[-1, 0], 1e-9), 2).astype(int)
    thirds = [table[third == k, 1] for k in range(3)]
    curve = [[round(t / 60, 1), *map(round, rest)] for t, *rest in rows]
    return {
        "thirds_mb": [round(float(part.mean())) if len(part) else round(rows[-1][1]) for part in thirds],
        "most_mb": round(float(table[:, 1].max())),
        "curve": curve[:: max(len(curve) // 120, 1)],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15, help="of each phase")
    parser.add_argument("--pages", type=int, default=4)
    options = parser.parse_args()
    numbers = measure(options.minutes, options.pages, every=5)
    OUT.write_text(json.dumps(numbers) + "\n")
    for name, phase in numbers["phases"].items():
        print(name, {key: value for key, value in phase.items() if key != "curve"})
