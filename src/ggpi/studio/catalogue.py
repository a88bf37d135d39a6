"""The worlds of a studio: loaded when they are first opened, once for all sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from ggpi.envs.ogbench_maze import MAZES
from ggpi.studio.cores import in_turn
from ggpi.studio.worlds import World

Make = Callable[[], World]


def four_rooms() -> World:
    """Exact models of four policies."""
    from ggpi.studio.grid import grid_world

    return grid_world()


def directory(path: Path | str, name: str | None = None, env: str | None = None) -> Make:
    """What makes the world of a directory of `ggpi fit`, or of shipped models."""

    def make() -> World:
        from ggpi.studio.fitted import fitted_world

        return fitted_world(Path(path), name, env)

    return make


def ogbench_maze(name: str) -> Make:
    """What makes the world of a point maze of OGBench."""

    def make() -> World:
        from ggpi.studio.ogbench import ogbench_world

        return ogbench_world(name)

    return make


WORLDS: Mapping[str, Make] = {
    "four-rooms": four_rooms,
    "point-mass": directory("point-mass-ghms", "point-mass"),
    "maze": directory("maze-ghms", "maze"),
    "ant": directory("ant-ghms", "ant"),
} | (
    {name: ogbench_maze(name) for name in MAZES if name.startswith("pointmaze")}
    if find_spec("ogbench")
    else {}
)
"""Those that come with the package, and OGBench's where it is installed."""


class Catalogue:
    """Worlds by name."""

    def __init__(self, worlds: Mapping[str, Make]):
        self._make, self._made = dict(worlds), dict[str, World]()
        self._locks = {name: threading.Lock() for name in worlds}

    @property
    def names(self) -> list[str]:
        return list(self._make)

    @property
    def num_agents(self) -> int:
        """Agents that the worlds which have been opened keep."""
        return sum(len(world.agents) for world in list(self._made.values()))

    def open(self, name: str) -> World:
        """The world of a name; raises for one that is not listed, or that cannot be made."""
        if name not in self._make:
            raise ValueError(f"there is no world {name[:40]!r}; there are {', '.join(self._make)}")
        with in_turn(self._locks[name]):
            if name not in self._made:
                self._made[name] = self._make[name]()
            return self._made[name]
