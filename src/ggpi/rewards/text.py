"""Rewards in words, for the command line.

target:x=1,y=2,radius=.5     1 for arriving within .5 of this place, in the named numbers of the state
features:vx=1,spin=-.1       a weighted sum of named numbers of the state, paid on arrival
saved:DIR                    a reward that ggpi.save wrote, such as one of ggpi.fit_reward
python:FILE.py:NAME          what FILE.py calls NAME: a reward of ggpi.rewards, or a function of the state that
                             is entered; the code of FILE.py is run
"""

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

from ggpi import rewards
from ggpi.data import StateSpec
from ggpi.rewards import Reward
from ggpi.storage.objects import load

KINDS = "target:NAME=NUMBER,…,radius=R, features:NAME=WEIGHT,…, saved:DIR or python:FILE.py:NAME"


def read_reward(text: str, spec: StateSpec) -> Reward:
    """The reward of these words."""
    kind, _, rest = text.partition(":")
    if kind == "target":
        return _target(rest, spec)
    if kind == "features":
        return rewards.features(_named_numbers(rest, spec, ()), spec)
    if kind == "saved":
        return _a_reward(load(rest), f"{rest} holds")
    if kind == "python":
        found = read_python(rest)
        return rewards.arrival(found) if callable(found) else _a_reward(found, f"{rest} is")
    raise ValueError(f"a reward is {KINDS}; got {text!r}")


def _target(text: str, spec: StateSpec) -> Reward:
    numbers = _named_numbers(text, spec, ("radius",))
    if "radius" not in numbers:
        raise ValueError(f"a target has a radius: target:{text},radius=.5")
    radius = numbers.pop("radius")
    if not numbers:
        raise ValueError(f"a target names numbers of the state, such as target:{spec.names[0]}=1,radius=.5")
    return rewards.target(list(numbers.values()), radius, [spec.index(name) for name in numbers])


def _named_numbers(text: str, spec: StateSpec, more: tuple[str, ...]) -> dict[str, float]:
    """{"x": 1.0, …} of x=1,…; every name is one of the state's, or one of `more`."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, given, number = (word.strip() for word in part.partition("="))
        if not given:
            raise ValueError(f"a reward has parts NAME=NUMBER, joined by commas; got {part!r} in {text!r}")
        if name not in (*spec.names, *more):
            there = ", ".join((*spec.names, *more))
            raise ValueError(f"no number of the state is called {name!r}; there are {there}")
        if name in found:
            raise ValueError(f"{name} is given twice in {text!r}")
        found[name] = _number(name, number)
    return found


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is a number, got {text!r}")
    return number


def _a_reward(found: Any, words: str) -> Reward:
    if not isinstance(found, Reward):
        raise ValueError(f"{words} a {type(found).__name__}, expected a reward of ggpi.rewards")
    return found


def read_python(text: str) -> Any:
    """What a file calls a name, of FILE.py:NAME; the file is run."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file.endswith(".py") or not name.isidentifier():
        raise ValueError(f"expected FILE.py:NAME, got {text!r}")
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be imported")
    print(f"ggpi: running the code of {path}", file=sys.stderr)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} raised {error!r} when it was run") from error
    if not hasattr(module, name):
        there = ", ".join(key for key in vars(module) if not key.startswith("_"))
        raise ValueError(f"{path} has no {name!r}; it has {there or 'nothing'}")
    return getattr(module, name)
