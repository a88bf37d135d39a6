"""How large the errors of a jumpy graph are: its values against exact ones, and what acting by them costs.

Cells of square rooms, as vectors (row, column), with the exact jumps of four directions: only the graph errs.

    jumps        all cells are landmarks, so that nothing is interpolated: noise, and the luck that the maximum prefers
    landmarks    many jumps: V is interpolated between fewer landmarks
    neighbours   the same with some landmarks and more neighbours each: V leaks through walls

Errors are those of V at the landmarks, in % of its largest value: root mean square, and the mean with its sign. The
loss is what an agent lacks of the largest value of all policies, mean over cells: at every step it takes the best
direction by one exact jump to the interpolated V. The agent of the exact closed loop loses something too.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi import rewards
from ggpi._jax.batching import stack
from ggpi.data import StateSpec
from ggpi.envs.gridworlds import rooms
from ggpi.ghm import exact_ghms
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.coordinates import Frame, fit_frame
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.mdp.optimal import q_star
from ggpi.mdp.tabular import TabularMDP
from ggpi.planning.closed_loop import evaluate_closed_loop
from ggpi.planning.graph_building import jumpy_graph
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.landmarks import interpolation
from ggpi.policies.linear import linear_policy
from ggpi.policies.tabular import TabularPolicy
from ggpi.switching import beta_of

GROUPS = {"jumps": "jumps of each policy", "landmarks": "landmarks", "neighbours": "neighbours"}
DIRECTIONS = 4


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """The first seed of landmarks and jumps."""
    num_seeds: int = 10
    """Seeds of landmarks and jumps."""
    rooms: int = 2
    """Rooms in a row, and rows of rooms."""
    size: int = 9
    """Cells of a room in a row."""
    gamma: float = 0.95
    """γ."""
    alpha: float = 0.3
    """α of the jumps."""
    slip: float = 0.1
    """Probability that a step goes another way."""
    jumps: tuple[int, ...] = (1, 4, 16, 64, 256)
    """Jumps of each policy from each landmark; all states are landmarks."""
    landmarks: tuple[int, ...] = (20, 40, 80, 160, 320)
    """Numbers of landmarks."""
    neighbours: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Landmarks that V is interpolated from."""
    some_landmarks: int = 80
    """Landmarks while neighbours differ."""
    many_jumps: int = 256
    """Jumps while landmarks and neighbours differ."""
    few_neighbours: int = 2
    """Neighbours while landmarks differ."""


PRESETS = {
    "tiny": Config(
        num_seeds=2, size=3, jumps=(1, 16), landmarks=(10, 40), neighbours=(1, 8), some_landmarks=10
    ),
    "cpu": Config(),
    "paper": Config(num_seeds=20),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Errors of every setting."""
    all_cells = len(world(config).mdp.labels)
    settings = [("jumps", n, (all_cells, n, 1)) for n in config.jumps]
    settings += [("landmarks", n, (n, config.many_jumps, config.few_neighbours)) for n in config.landmarks]
    settings += [("neighbours", n, (config.some_landmarks, config.many_jumps, n)) for n in config.neighbours]
    jobs = {f"{group}/{value}": partial(errors, config, *sizes) for group, value, sizes in settings}
    results = cells(jobs)
    rows = [{"group": group, "value": value, **results[f"{group}/{value}"]} for group, value, _ in settings]
    return {
        "cells": all_cells,
        "num_seeds": config.num_seeds,
        "exact_loss": 100 * loss(config, world(config), world(config).u.argmax(axis=0)),
        "rows": rows,
    }


class TableOfJumps(AbstractGHM):
    """μ_β of a policy between cells, as a model of vectors."""

    frame: Frame
    places: Float[Array, "S 2"]
    index: Int[Array, "h w"]
    """The number of each cell."""
    below: Float[Array, "S S"]
    """Probabilities of ends, summed."""

    @property
    def noise_size(self) -> int:
        return 1

    @property
    def loss_noise_size(self) -> int:
        return 0

    def push(self, state: Array, action: Array, noise: Array) -> Array:
        row, column = jnp.round(state).astype(jnp.int32)
        u = jax.scipy.special.ndtr(noise[0])
        end = jnp.searchsorted(self.below[self.index[row, column]], u, side="right")
        return self.places[jnp.minimum(end, len(self.places) - 1)]

    def loss(self, state: Array, action: Array, target: Array, noise: Array) -> Array:
        return jnp.zeros(len(state))


class Goal(eqx.Module):
    """A reward that falls with the distance to a place."""

    place: Float[Array, "2"]

    def __call__(self, state: Array, *_: Array) -> Array:
        return jnp.exp(-((state - self.place) ** 2).sum() / 4)


class World(NamedTuple):
    """The rooms as a finite MDP and as vectors, with what is exact."""

    mdp: TabularMDP
    places: Float[np.ndarray, "S 2"]
    models: GHMs
    reward: rewards.Reward
    table: Float[np.ndarray, "S"]
    """The reward of each cell."""
    u: Float[np.ndarray, "K S"]
    """Values of the closed loop."""
    jumps: Float[np.ndarray, "K S S"]
    """μ_β of every policy."""


@lru_cache(maxsize=1)
def world(config: Config) -> World:
    """Rooms with a goal in the middle of the last one."""
    mdp = rooms(config.rooms, config.size, config.slip)
    places = np.array(mdp.labels, np.float32)
    policies = [TabularPolicy.constant(mdp, a) for a in range(DIRECTIONS)]
    exact = exact_ghms(mdp, policies, config.gamma, config.alpha)
    one = np.eye(len(places))
    jumps = np.stack([exact.segment(k, config.alpha).expect(one)[:, k] for k in range(DIRECTIONS)])
    goal = Goal(jnp.asarray(places[-1] - config.size // 2))
    table = np.asarray(jax.vmap(goal)(jnp.asarray(places)), float)
    u = evaluate_closed_loop(exact, rewards.arrival(table)).v
    models = vectors(config, places, jumps)
    return World(mdp, places, models, rewards.arrival(goal), table, u, jumps)


def vectors(config: Config, places: np.ndarray, jumps: np.ndarray) -> GHMs:
    """The same models over vectors (row, column)."""
    frame = fit_frame(
        places, np.zeros((len(places), 2), np.float32), places, StateSpec(("row", "column")), None
    )
    index = np.zeros(places.max(axis=0).astype(int) + 1, np.int32)
    index[tuple(places.astype(int).T)] = np.arange(len(places))
    parts = frame, jnp.asarray(places), jnp.asarray(index)
    below = np.cumsum(jumps, axis=2).astype(np.float32)
    models = stack([TableOfJumps(*parts, jnp.asarray(one)) for one in below])
    policies = tuple(linear_policy(np.zeros((2, 2)), np.eye(2)[0], 0.0, str(k)) for k in range(len(jumps)))
    return GHMs(policies, config.gamma, (config.alpha,), (models, models))


def loss(config: Config, given: World, heads: Int[np.ndarray, "S"]) -> float:
    """What acting by the policy of each cell, which is a direction, lacks of the largest value."""
    reward = rewards.arrival(given.table)
    best = q_star(given.mdp, reward, config.gamma).max(axis=1)
    found = given.mdp.v(TabularPolicy(np.eye(DIRECTIONS)[heads]), reward, config.gamma)
    return float(1 - found.mean() / best.mean())


def errors(config: Config, num_landmarks: int, num_jumps: int, num_neighbours: int) -> Metrics:
    """Errors of graphs of one size: means over seeds."""
    given, found = world(config), []
    for seed in range(config.seed, config.seed + config.num_seeds):
        graph = jumpy_graph(
            given.models,
            given.places,
            num_landmarks=num_landmarks,
            num_jumps=num_jumps,
            num_neighbours=num_neighbours,
            key=jax.random.key(seed),
        )
        found.append(_errors(config, given, graph))
    return {name: mean_interval([100 * one[name] for one in found]) for name in found[0]}


def _errors(config: Config, given: World, graph: JumpyGraph) -> dict[str, float]:
    v, exact = graph.solve(given.reward), given.u.max(axis=0)
    cells = [given.mdp.index(tuple(place)) for place in graph.landmarks.astype(int).tolist()]
    wrong = (v - exact[cells]) / exact.max()
    heads = chosen(config, given, interpolated(graph, v, given.places))
    return {
        "error": float(np.sqrt((wrong**2).mean())),
        "bias": float(wrong.mean()),
        "loss": loss(config, given, heads),
    }


def interpolated(graph: JumpyGraph, v: np.ndarray, places: np.ndarray) -> Float[np.ndarray, "S"]:
    """V of all cells, from the nearest landmarks."""
    rows, apart = graph.atlas.nearest(places)
    return (np.asarray(interpolation(apart)) * v[np.asarray(rows)]).sum(axis=1)


def chosen(config: Config, given: World, v: Float[np.ndarray, "S"]) -> Int[np.ndarray, "S"]:
    """The best policy of each cell by one exact jump to V."""
    beta = beta_of(config.gamma, config.alpha)
    u = given.jumps @ (given.table / (1 - beta) + (config.gamma - beta) / (1 - beta) * v)
    return u.argmax(axis=0)
