"""What the page and the server say to each other, version 1.

From the page, JSON text of at most 16 KB, {"type": …} and:

    open      world                                   show a world
    change    formula, depth, second, planner,
              samples, gamma, alpha, speed, repeat,
              seed                                    any of them; see `Change`
    play, pause, step, reset                          the agents move, stop, make one step, start a new episode
    put       x, y                                    put the agents at a place
    explain   agent, t                                compare the plans of a moment, also with simulation
    diagnose                                          compare the models with simulation, where the first agent is

From the server, JSON text {"type": …}, or a binary frame: the length of a JSON header in four bytes (little endian),
the header with spaces up to a multiple of four bytes, and the arrays that `header["arrays"]` names, as float32:

    hello     version, worlds, replay, film           once; film: whether POST /film?token=… makes MP4 of a GIF
    world     everything that the page needs to draw a world
    settings  the settings in force, and the code that does the same: python, command
    moment    binary: a moment of an episode: place, return, plans; arrays places [n, 2], poses [frames, shapes, 7];
              way: x, y, policy and reward of each of the last steps before it
    rewards   binary: the reward on the map: places [n, 2], values [n], and the size of a cell
    values    binary: V on the map of an agent, in the closed loop; without arrays elsewhere
    tally     how many episodes of each agent have met the reward
    explained, diagnosed                              answers
    status    text: what takes long; empty when it is done
    error     text: what was wrong

`ggpi.studio.frames` has every field of every message and frame. A page whose own version is another one has to be
loaded again. Of moments and values only the latest is kept for a page that reads slowly; `way` has the steps that it
has missed.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

VERSION = 1
LARGEST = 16_384
DEPTHS = (1, 2, 3, 0)
"""0 is the closed loop."""


class ProtocolError(ValueError):
    """A message that the server does not understand."""


@dataclass(frozen=True)
class Open:
    """Show a world."""

    world: str


@dataclass(frozen=True)
class Change:
    """Other settings; None leaves them as they are."""

    formula: str | None = None
    depth: int | None = None
    second: int | None = None
    """The depth of a second agent; −1 for none."""
    planner: str | None = None
    samples: int | None = None
    gamma: float | None = None
    alpha: float | None = None
    speed: float | None = None
    """Steps of simulated time per time; 0 is as fast as possible."""
    repeat: bool | None = None
    """Start a new episode when one is over."""
    seed: int | None = None
    """Another episode: the start of the agents and all random numbers."""


@dataclass(frozen=True)
class Play:
    """The agents move until `Pause`."""


@dataclass(frozen=True)
class Pause:
    """The agents stop."""


@dataclass(frozen=True)
class Step:
    """The agents make one step."""


@dataclass(frozen=True)
class Reset:
    """A new episode."""


@dataclass(frozen=True)
class Put:
    """The agents are put at a place."""

    x: float
    y: float


@dataclass(frozen=True)
class Explain:
    """Why this policy, at this moment?"""

    agent: int
    t: int


@dataclass(frozen=True)
class Diagnose:
    """Are the models right, here?"""


Message = Open | Change | Play | Pause | Step | Reset | Put | Explain | Diagnose
KINDS: Mapping[str, type[Message]] = {kind.__name__.lower(): kind for kind in Message.__args__}


def read(text: str | bytes) -> Message:
    """A message of the page; raises ProtocolError for everything else."""
    if len(text) > LARGEST:
        raise ProtocolError(f"a message has at most {LARGEST} bytes, got {len(text)}")
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a message is JSON text") from error
    if not isinstance(held, dict) or not isinstance(held.get("type"), str) or held["type"] not in KINDS:
        raise ProtocolError(f"a message is an object with a type among {', '.join(KINDS)}")
    kind = KINDS[held.pop("type")]
    known = {field.name: field for field in fields(kind)}
    if unknown := held.keys() - known.keys():
        raise ProtocolError(f"{kind.__name__.lower()} has no field {sorted(unknown)[0][:40]!r}")
    for name in known:
        if kind is not Change and name not in held:
            raise ProtocolError(f"{kind.__name__.lower()} needs the field {name}")
    return kind(**{name: CHECKS[name](value, name) for name, value in held.items()})


def _text(most: int) -> Callable[[object, str], str]:
    def check(value: object, name: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ProtocolError(f"{name} is a text of at most {most} characters")
        return value

    return check


def _number(low: float, high: float) -> Callable[[object, str], float]:
    def check(value: object, name: str) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        raise ProtocolError(f"{name} is a number from {low:g} to {high:g}")

    return check


def _whole(low: int, high: int) -> Callable[[object, str], int]:
    def check(value: object, name: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ProtocolError(f"{name} is a whole number from {low} to {high}")
        return value

    return check


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ProtocolError(f"{name} is true or false")
    return value


CHECKS: Mapping[str, Callable[[object, str], Any]] = {
    "world": _text(100),
    "formula": _text(4_000),
    "depth": _whole(0, 3),
    "second": _whole(-1, 3),
    "planner": _text(20),
    "samples": _whole(1, 500),
    "gamma": _number(0.01, 0.999),
    "alpha": _number(0.001, 1.0),
    "speed": _number(0.0, 100.0),
    "repeat": _flag,
    "seed": _whole(0, 1_000_000_000),
    "x": _number(-1e6, 1e6),
    "y": _number(-1e6, 1e6),
    "agent": _whole(0, 1),
    "t": _whole(0, 1_000_000),
}
"""What each field may hold."""


def text_frame(kind: str, **fields: Any) -> str:
    """A message to the page."""
    return json.dumps(cleaned({"type": kind, **fields}), allow_nan=False)


def binary_frame(kind: str, arrays: Mapping[str, np.ndarray], **fields: Any) -> bytes:
    """A message to the page with arrays."""
    shapes = [{"name": name, "shape": list(array.shape)} for name, array in arrays.items()]
    header = text_frame(kind, **fields, arrays=shapes).encode()
    header += b" " * (-len(header) % 4)
    parts = [np.ascontiguousarray(array, "<f4").tobytes() for array in arrays.values()]
    return b"".join([struct.pack("<I", len(header)), header, *parts])


def read_binary(frame: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a binary frame: what the page does, for other clients."""
    (size,) = struct.unpack_from("<I", frame)
    header, at, arrays = json.loads(frame[4 : 4 + size]), 4 + size, {}
    for about in header["arrays"]:
        count = math.prod(about["shape"])
        arrays[about["name"]] = np.frombuffer(frame, "<f4", count, at).reshape(about["shape"])
        at += 4 * count
    return header, arrays


def cleaned(value: Any) -> Any:
    """Plain JSON: numbers that are not finite become null, arrays lists."""
    if isinstance(value, dict):
        return {str(name): cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return cleaned(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
