"""Gymnasium environments that others wrote: made by id and stepped, with errors that say what is wrong and what to do.

Gymnasium's own errors do not name the environment, and those of environments written for the old Gym come from the
middle of a wrapper. `naming` turns both into one clear line; errors of any other kind are the environment's own.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import VectorEnv

ELSEWHERE = (
    "Those of other packages, or of a file boat.py in this directory, are named with their module, such as "
    "gymnasium_robotics:PointMaze_UMaze-v3 or boat:Boat-v0"
)
EXTRAS = {"box2d": "box2d", "mujoco": "ant", "gymnasium_robotics": "maze", "ogbench": "ogbench"}
"""Our extras that bring what environments need, by the extra of Gymnasium or by the module."""
OLD = (
    "It seems to be written for the old Gym: in Gymnasium, reset(*, seed=None, options=None) returns "
    "(observation, info) and step(action) returns (observation, reward, terminated, truncated, info). Change it, or "
    "wrap it"
)


def make(name: str, **options: Any) -> gymnasium.Env:
    """`gymnasium.make` with clear errors."""
    with _making(name):
        return gymnasium.make(name, **options)


def make_vec(name: str, num_envs: int) -> VectorEnv:
    """`gymnasium.make_vec` with clear errors."""
    with _making(name):
        return gymnasium.make_vec(name, num_envs)


@contextlib.contextmanager
def _making(name: str) -> Iterator[None]:
    module = name.rpartition(":")[0]
    try:
        yield
    except DependencyNotInstalled as error:
        raise ModuleNotFoundError(
            f"environment {name!r} needs a package that is not installed: {_advice(str(error))}"
        ) from error
    except ModuleNotFoundError as error:
        if not module or error.name not in (None, module.partition(".")[0]):
            raise
        top = module.partition(".")[0]
        advice = _extra(top) if top in EXTRAS else f"install its package, or run in the directory of {top}.py"
        raise ModuleNotFoundError(
            f"environment {name!r}: there is no module {module!r} to import it from; {advice}", name=module
        ) from error
    except (gymnasium.error.Error, TypeError) as error:  # options that the environment does not have
        raise ValueError(f"environment {name!r}: {str(error).strip().rstrip('.')}. {ELSEWHERE}") from error


def _advice(text: str) -> str:
    """Gymnasium's hint, or the one command that replaces it."""
    extra = re.search(r"gymnasium\[([\w-]+)\]", text)
    if extra is None:
        return text
    return _extra(extra[1]) if extra[1] in EXTRAS else f'pip install "gymnasium[{extra[1]}]" installs it'


def _extra(name: str) -> str:
    return f"pip install '.[{EXTRAS[name]}]' in the checkout installs it"


@contextlib.contextmanager
def naming(env: Any) -> Iterator[None]:
    """Names the environment in errors of a `reset` or `step` that is not Gymnasium's."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not re.search(r"values to unpack|unexpected keyword argument '(seed|options)'", str(error)):
            raise
        raise ValueError(f"environment {name_of(env)}: {error}. {OLD}") from error


def check_finite(states: np.ndarray, rows: np.ndarray, steps: np.ndarray, env: Any) -> None:
    """Raises for a state that is not finite in one of these rows, each of them after so many steps of its episode."""
    if np.isfinite(states).all():
        return
    for i in np.flatnonzero(rows):
        if not np.isfinite(states[i]).all():
            seen = np.array2string(np.asarray(states[i]), precision=3, threshold=12)
            raise ValueError(
                f"environment {name_of(env)} gave an observation that is not finite in step {steps[i]} of an episode: "
                f"{seen}. Nothing was recorded; find out why, or end the episode before it happens"
            )


def name_of(env: Any) -> str:
    """The id of an environment or of the copies in a vector environment, or else its class."""
    if env.spec is not None:
        return env.spec.id
    copies = getattr(env, "envs", None)
    inner = copies[0].unwrapped if copies else env.unwrapped
    return inner.spec.id if inner.spec is not None else type(inner).__name__
