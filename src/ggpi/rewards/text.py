"""Rewards as text, for the command line.

target:x=1,y=2,radius=.5     1 for arriving within .5 of this place, in named state dimensions
features:vx=1,spin=-.1       a weighted sum of named state dimensions, received on arrival
formula:disc(1,2,.5)-.1*vx   a formula of the state that is entered, see ggpi.rewards.grammar
saved:DIR                    a reward that ggpi.save wrote, such as the result of ggpi.fit_reward
python:FILE.py:NAME          the object NAME of FILE.py: a reward of ggpi.rewards, or a function of the state that is
                             entered; this runs the code of FILE.py
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

FORMS = "target:NAME=NUMBER,…,radius=R, features:NAME=WEIGHT,…, formula:EXPRESSION, saved:DIR or python:FILE.py:NAME"


def read_reward(text: str, spec: StateSpec) -> Reward:
    """Parses a reward.

    Args:
        text: One of the forms above.
        spec: The names of the state dimensions.
    """
    kind, _, rest = text.partition(":")
    if kind == "target":
        return _target(rest, spec)
    if kind == "features":
        return rewards.features(_named_numbers(rest, spec, ()), spec)
    if kind == "formula":
        return rewards.formula(rest, spec)
    if kind == "saved":
        return _a_reward(load(rest), f"{rest} holds")
    if kind == "python":
        found = read_python(rest)
        return rewards.arrival(found) if callable(found) else _a_reward(found, f"{rest} is")
    raise ValueError(f"a reward is {FORMS}; got {text!r}")


def _target(text: str, spec: StateSpec) -> Reward:
    numbers = _named_numbers(text, spec, ("radius",))
    if "radius" not in numbers:
        raise ValueError(f"a target needs a radius: target:{text},radius=.5")
    radius = numbers.pop("radius")
    if not numbers:
        raise ValueError(f"a target needs state dimensions, such as target:{spec.names[0]}=1,radius=.5")
    return rewards.target(list(numbers.values()), radius, [spec.index(name) for name in numbers])


def _named_numbers(text: str, spec: StateSpec, more: tuple[str, ...]) -> dict[str, float]:
    """{"x": 1.0, …} from x=1,…; names are state dimensions or in `more`."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, given, number = (word.strip() for word in part.partition("="))
        if not given:
            raise ValueError(f"expected NAME=NUMBER, separated by commas; got {part!r} in {text!r}")
        if name not in (*spec.names, *more):
            there = ", ".join((*spec.names, *more))
            raise ValueError(f"there is no state dimension {name!r}; available: {there}")
        if name in found:
            raise ValueError(f"{name} appears twice in {text!r}")
        found[name] = _number(name, number)
    return found


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {text!r}")
    return number


def _a_reward(found: object, words: str) -> Reward:
    if not isinstance(found, Reward):
        raise ValueError(f"{words} a {type(found).__name__}, expected a reward of ggpi.rewards")
    return found


def read_python(text: str) -> Any:
    """The object NAME of FILE.py, from the text FILE.py:NAME; this runs the file."""
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
        raise ValueError(f"running {path} raised {error!r}") from error
    if not hasattr(module, name):
        there = ", ".join(key for key in vars(module) if not key.startswith("_"))
        raise ValueError(f"{path} has no {name!r}; it has {there or 'nothing'}")
    return getattr(module, name)
