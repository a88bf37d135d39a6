"""What the studio shows: a world with its models, as a map of two coordinates.

`ggpi.studio.catalogue` makes those that come with the package, and `ggpi.studio.app(worlds=…)` takes others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi import rewards
from ggpi._jax.jit import jit
from ggpi.envs.environment import Dynamics
from ggpi.ghm.base import GHMs
from ggpi.planning.graph_building import jumpy_graph
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.rewards import Formula, Reward, read_formula
from ggpi.studio.bodies import Body
from ggpi.studio.cores import in_turn
from ggpi.studio.latest import Latest
from ggpi.types import Numbers

Box = tuple[float, float, float, float]
"""x and y of two corners."""
LANDMARKS = 1_500
AGENTS = 6
"""Agents that a world keeps, each for its settings, with their compiled programs."""
GRAPHS = 4
"""Graphs of the closed loop that are kept, each for one γ and α."""
LARGEST_GAMMA = 0.99
"""That the page offers for exact models."""
RASTER = 48
"""Cells of a map of values along its longer side."""


@jit
def _values(formula: Formula, places: Numbers) -> Array:
    return jax.vmap(formula)(places)


@dataclass(frozen=True, eq=False)
class World:
    """A world and its models.

    Args:
        name: what the URL calls it.
        title: what the page calls it.
        ghms: the models.
        names: the coordinates that formulas may use.
        bounds: the part of the plane that the map shows.
        body: makes an agent's body from a seed.
        formula: the reward that is painted at first.
        walls: boxes that nothing enters.
        plane: the state dimensions on the axes of the map.
        places: the coordinates of each state of a finite MDP.
        dynamics: steps states, where that is possible from any of them.
        at: the state of an agent that is put at (x, y); None where it cannot be.
        seconds: how long a step takes.
        max_steps: steps of an episode.
        samples: samples of each plan, at first.
        depth: the depth at first; 0 is the closed loop.
        landmarks: states that the closed loop may choose landmarks from.
        num_landmarks: how many it chooses.
        relearn: exact models for another γ and α.
        code: Python that makes `ghms` and `reward`.
        landmarks_code: Python that makes `states`, the `landmarks`.
        directory: the directory of `ggpi fit`.
        played: what `ggpi play` calls it; nothing if it does not know this world.
        geometry: shapes of a body in three dimensions.
    """

    name: str
    title: str
    ghms: GHMs
    names: tuple[str, ...]
    bounds: Box
    body: Callable[[int], Body]
    formula: str
    walls: tuple[Box, ...] = ()
    plane: tuple[int, int] = (0, 1)
    places: Float[np.ndarray, "S 2"] | None = None
    dynamics: Callable[[], Dynamics] | None = None
    at: Callable[[float, float], np.ndarray | None] | None = None
    seconds: float = 0.1
    max_steps: int = 150
    samples: int = 100
    depth: int = 2
    relearn: Callable[[float, float], GHMs] | None = None
    landmarks: Callable[[], np.ndarray] | None = None
    num_landmarks: int = LANDMARKS
    code: str = ""
    landmarks_code: str = ""
    directory: str | None = None
    played: str = ""
    geometry: list[dict[str, Any]] | None = None
    turns: tuple[threading.Lock, ...] = field(
        default_factory=lambda: tuple(threading.Lock() for _ in range(16)), repr=False
    )
    """Who prepares agents, one at a time for the same settings."""
    agents: Latest[Any, Any] = field(default_factory=partial(Latest, AGENTS), repr=False)
    """Agents by their settings, from which those of pages are made."""
    _graphs: Latest[tuple[float, float], JumpyGraph] = field(
        default_factory=partial(Latest, GRAPHS), repr=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def place(self, states: Numbers) -> Float[np.ndarray, "*b 2"]:
        """Where states [..., D], or numbers of states [...], are on the map."""
        if self.places is not None:
            return self.places[np.asarray(states, int)]
        return np.asarray(states, float)[..., self.plane]

    def reward(self, text: str) -> Reward:
        """A formula as a reward of this world."""
        read = read_formula(text, self.names)
        if self.places is None:
            return rewards.arrival(read)
        return rewards.arrival(np.asarray(_values(read, self.places.astype(np.float32)), float))

    def reward_at(self, text: str, states: Numbers) -> Float[np.ndarray, "n"]:
        """The reward of entering states, where it is finite."""
        read = read_formula(text, self.names)
        seen = states if self.places is None else self.places[np.asarray(states, int)]
        return np.asarray(_values(read, jnp.asarray(seen, jnp.float32)))

    def models(self, gamma: float | None, alpha: float | None) -> GHMs:
        """The models at a discount and a switching probability; None leaves what they were made for."""
        own = self.ghms
        gamma, alpha = gamma or own.gamma, alpha or own.alphas[0]
        if (gamma, alpha) == (own.gamma, own.alphas[0]):
            return own
        if self.relearn is not None:
            return self.relearn(gamma, alpha)
        if own.network is not None:
            return own.with_gamma(gamma).with_alpha([alpha])
        if gamma != own.gamma or alpha not in own.alphas:
            raise ValueError(f"these models are of γ = {own.gamma:g} and α in {list(own.alphas)}")
        return own

    @property
    def graph_options(self) -> dict[str, int]:
        """States of a finite MDP are landmarks themselves."""
        return {} if self.places is None else {"num_neighbours": 1, "num_jumps": 128}

    def graph(self, ghms: GHMs, alpha: float) -> JumpyGraph:
        """Jumps between landmarks, made once for all sessions; the graphs that were used last are kept."""
        if self.landmarks is None:
            raise ValueError("this world has no landmarks for the closed loop; choose a depth of 1, 2 or 3")
        with in_turn(self._lock):
            if (found := self._graphs.get((ghms.gamma, alpha))) is None:
                states = self.landmarks()
                count = min(self.num_landmarks, len(np.unique(states, axis=0)))
                options: dict[str, Any] = {"num_landmarks": count, "alpha": alpha, **self.graph_options}
                found = jumpy_graph(ghms, states, key=jax.random.key(0), **options)
                self._graphs.put((ghms.gamma, alpha), found)
            return found

    @cached_property
    def raster(self) -> tuple[np.ndarray, float]:
        """States at rest on a regular grid over the map, where they are possible, and the size of a cell.

        Where an agent cannot be put anywhere, states of the data take the place of the grid.
        """
        x0, y0, x1, y1 = self.bounds
        if self.places is not None:
            return np.arange(len(self.places)), 1.0
        step = max(x1 - x0, y1 - y0) / RASTER
        if self.at is None:
            states = (
                np.zeros((0, len(self.names)), np.float32) if self.landmarks is None else self.landmarks()
            )
            return states[:: max(len(states) // RASTER**2, 1)], step
        columns, rows = max(round((x1 - x0) / step), 1), max(round((y1 - y0) / step), 1)
        x, y = (np.arange(columns) + 0.5) * step + x0, (np.arange(rows) + 0.5) * step + y0
        found = [self.at(float(a), float(b)) for b in y for a in x]
        states = np.array([state for state in found if state is not None], np.float32)
        return states.reshape(-1, len(self.names)), step


def about(world: World) -> dict[str, Any]:
    """What the page needs to draw a world."""
    ghms = world.ghms
    is_free = world.relearn is not None or ghms.network is not None
    return {
        "name": world.name,
        "title": world.title,
        "names": world.names,
        "axes": [world.names[i] for i in world.plane],
        "bounds": world.bounds,
        "walls": world.walls,
        "policies": ghms.names,
        "gamma": ghms.gamma,
        "alphas": ghms.alphas,
        "free": is_free,
        "largest": LARGEST_GAMMA if ghms.network is None else ghms.network.largest,
        "seconds": world.seconds,
        "max_steps": world.max_steps,
        "closed_loop": world.landmarks is not None,
        "put": world.at is not None,
        "simulator": world.dynamics is not None,
        "grid": world.places is not None,
        "geometry": world.geometry,
    }
