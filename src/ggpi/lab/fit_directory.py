"""`world.json`: the environment of a directory of models, and the names of its state's coordinates.

OUT/world.json     environment, keys, names of the coordinates, actions; the settings of the fit
OUT/data.npz       the transitions, if they were collected here
OUT/models/        the models, as `ggpi.save` writes them; beside them checkpoints and metrics of `ggpi.fit`
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ggpi.data import StateSpec
from ggpi.data.spaces import check_action_space, state_reader
from ggpi.envs.making import make
from ggpi.ghm.base import GHMs
from ggpi.lab.cells import as_stored
from ggpi.storage.arrays import read_json, write_json
from ggpi.storage.errors import FileError
from ggpi.storage.objects import Foreign, load
from ggpi.storage.pretrained import WEIGHTS
from ggpi.storage.reading import abbreviate, as_file_errors, short

FORMAT = "ggpi world 1"
NAMES = {
    "Acrobot": ("cos1", "sin1", "cos2", "sin2", "speed1", "speed2"),
    "CartPole": ("position", "velocity", "angle", "spin"),
    "LunarLander": ("x", "y", "vx", "vy", "angle", "spin", "leg1", "leg2"),
    "MountainCar": ("position", "velocity"),
    "MountainCarContinuous": ("position", "velocity"),
    "Pendulum": ("cos", "sin", "speed"),
    "PointMaze": ("x", "y", "vx", "vy"),
}
"""Names of the coordinates of some well-known environments; those of others are x0, x1, …"""


@dataclass(frozen=True)
class World:
    """An environment by name, and the names of its state's coordinates."""

    env: str
    """A Gymnasium id, with its module if that has to be imported: gymnasium_robotics:PointMaze_UMaze-v3."""
    names: tuple[str, ...]
    relative: tuple[str, ...] = ()
    """Positions, which models drop from their inputs and predict as displacements."""
    keys: tuple[str, ...] = ()
    """Parts of a dictionary that make the state; none when observations are vectors."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `gymnasium.make`."""
    actions: str = ""
    """In words."""
    places: tuple[str, ...] = ()
    """Positions among walls."""

    @property
    def spec(self) -> StateSpec:
        relative, places = (tuple(map(self.names.index, names)) for names in (self.relative, self.places))
        return StateSpec(self.names, relative, places=places)

    def make(self, **more: Any) -> gymnasium.Env:
        """The environment itself."""
        return make(self.env, **self.options, **more)

    def reader(self, env: gymnasium.Env) -> Callable[[Any], np.ndarray]:
        """What makes states of observations."""
        return state_reader(env.observation_space, self.keys or None)


def look(
    name: str,
    keys: Sequence[str] = (),
    names: Sequence[str] = (),
    relative: Sequence[str] = (),
    places: Sequence[str] = (),
) -> tuple[World, Any]:
    """The world of an environment's id, and its action space; raises for what models cannot be learned of."""
    env = make(name)
    try:
        example = state_reader(env.observation_space, keys or None)(env.observation_space.sample())
        check_action_space(env.action_space)
    except (KeyError, TypeError) as error:
        raise ValueError(f"environment {name!r}: {error.args[0]}") from error
    finally:
        env.close()
    if example.ndim != 1:
        raise ValueError(
            f"environment {name!r}: models are learned over vectors, observations are {env.observation_space}"
        )
    called = _names(env, len(example), tuple(names))
    unknown = [name for name in (*relative, *places) if name not in called]
    if unknown:
        raise ValueError(f"no part of the state is called {unknown[0]!r}; there are {', '.join(called)}")
    space = env.action_space
    acts = f"{space.shape[0]} numbers" if isinstance(space, Box) else f"one of {getattr(space, 'n', 0)}"
    world = World(name, called, tuple(relative), tuple(keys), {}, acts, tuple(places))
    _ = world.spec  # raises if it cannot be
    return world, space


def _names(env: gymnasium.Env, size: int, given: tuple[str, ...]) -> tuple[str, ...]:
    """The given names, or those that are known; x3, or the next free one, for what has none."""
    inner = env.unwrapped
    spec = getattr(inner, "spec_of_state", None) or getattr(getattr(inner, "environment", None), "spec", None)
    known = spec.names if spec else NAMES.get((env.spec.name if env.spec else "").split("_")[0], ())
    if len(given) > size or len(set(given)) < len(given):
        raise ValueError(
            f"--names are different names of the state's {size} coordinates, got {', '.join(given)}"
        )
    if not given and len(known) == size:
        return tuple(known)
    free = (name for i in itertools.count(len(given)) if (name := f"x{i}") not in given)
    return (*given, *itertools.islice(free, size - len(given)))


def claim(directory: Path, world: World, settings: Mapping[str, Any]) -> bool:
    """Makes a directory that of a fit; one that holds something else raises.

    A fit may be given more steps than it had: then the answer is True, and `record` belongs after the training.
    One that failed before it had any transitions leaves nothing but world.json, which is replaced.
    """
    content = _content(world, settings)
    path = directory / "world.json"
    others = sorted(entry.name for entry in directory.glob("[!.]*") if entry != path)
    if path.exists() and others:
        held = read_json(path)
        return _has_more_steps(directory, held if isinstance(held, dict) else {}, content)
    if others:
        raise ValueError(
            f"{directory} holds files that are not of ggpi fit, such as {others[0]}; choose another --out"
        )
    record(directory, world, settings)
    return False


def record(directory: Path, world: World, settings: Mapping[str, Any]) -> None:
    """Writes world.json."""
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "world.json", _content(world, settings))


def _content(world: World, settings: Mapping[str, Any]) -> dict[str, Any]:
    return as_stored({"format": FORMAT, **asdict(world), "settings": dict(settings)})


def _has_more_steps(directory: Path, held: dict[str, Any], content: dict[str, Any]) -> bool:
    """Whether nothing but the number of steps has changed, and that has grown; another change raises."""
    old, new = ({**one, **(one.get("settings") or {})} for one in (held, content))
    there = {
        name: value for name, value in new.items() if name in old or value
    }  # others are newer than the file
    changed = [name for name in there if name != "settings" and old.get(name) != new[name]]
    steps = old.get("steps")
    if changed == ["steps"] and isinstance(steps, int) and steps < new["steps"]:
        return True
    if changed:
        name = next((name for name in changed if name != "steps"), "steps")
        advice = "more steps continue it, for fewer choose" if name == "steps" else "choose"
        raise ValueError(
            f"{directory} holds a fit with {name} = {old.get(name)}, now it is {new[name]}; {advice} another --out"
        )
    return False


def read_world(directory: Path) -> World:
    """What `ggpi fit` wrote; says what is missing or damaged."""
    path = directory / "world.json"
    if not path.exists():
        raise ValueError(f"{directory} has no world.json; expected a directory that ggpi fit wrote")
    held = read_json(path)
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise FileError(path, f"is not of format {FORMAT!r}", field="format")
    lists = {name: held.get(name) for name in ("names", "relative", "keys")}
    lists["places"] = held.get("places", [])  # which older files lack
    for name, values in lists.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise FileError(path, f"{name} is a list of names, got {abbreviate(values)}", field=name)
    for name, kind in (("env", str), ("options", dict), ("actions", str)):
        if not isinstance(held.get(name), kind):
            wanted = "an object" if kind is dict else "a name"
            raise FileError(path, f"{name} is {wanted}, got {abbreviate(held.get(name))}", field=name)
    parts = {name: tuple(values or ()) for name, values in lists.items()}
    world = World(env=held["env"], options=held["options"], actions=held["actions"], **parts)
    with as_file_errors(path):
        _ = world.spec
    return world


def trusted(world: World, named: str | None, directory: Path) -> World:
    """The world, if making its environment imports nothing that only the file names.

    An id is looked up among those that are registered already. A module is imported if the user has `named` it:
    importing runs its code.
    """
    module, _, name = world.env.rpartition(":")
    if named is not None:
        if named.rpartition(":")[2] != name:
            raise ValueError(f"{directory} holds models of {short(world.env)}, --env is {named}")
        return dataclasses.replace(world, env=named)
    if not module or name in gymnasium.registry:
        return dataclasses.replace(world, env=name)
    raise ValueError(
        f"{directory / 'world.json'} names the environment {short(world.env)}, and importing the module "
        f"{short(module)} would run its code; if you know it, say so: "
        f"ggpi play {directory} --env {short(world.env)} …"
    )


def read_models(path: Path) -> GHMs:
    """Models that `ggpi.save` wrote, or those in the directory of a finished `ggpi.fit`."""
    inner = path / "models" if (path / "models").is_dir() else path
    if not (inner / "about.json").exists():
        unfinished = (path / "metrics.jsonl").exists() or (path / "world.json").exists()
        hint = "a fit that is not finished: give the same command again" if unfinished else "no models"
        raise ValueError(f"{path} holds {hint}; expected a directory that ggpi fit or ggpi.save wrote")
    ghms = load(inner)
    if not isinstance(ghms, GHMs):
        raise ValueError(f"{path} holds a {type(ghms).__name__}, not models of policies")
    lacking = [policy.name for policy in ghms.policies if isinstance(policy, Foreign)]
    if lacking:
        raise ValueError(
            f"{path} was saved without the code of {', '.join(lacking)}; call ggpi.diagnose with the policies"
        )
    return ghms


def shipped(directory: Path) -> Path:
    """The directory; or that of shipped models, such as "ant-ghms", if there is none of this name."""
    inside = WEIGHTS / directory
    is_name = not directory.exists() and len(directory.parts) == 1 and (inside / "world.json").exists()
    return inside if is_name else directory
