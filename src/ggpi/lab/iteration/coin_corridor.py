"""A gridworld observed as vectors, in which greedy improvement forgets what it will need: Example D.4 in two rows.

    c c c c c c c c      coins: a small reward on every arrival, larger to the left
    . . . . . . . .      the corridor: no reward
                  G      the goal: a reward of 1 on every arrival

An observation is (column, row), in cells from the middle, plus uniform noise: no observation occurs twice, and the cell
is the nearest one. Four actions as in all gridworlds here; bumping into a wall changes nothing. A policy that always
goes right walks to the corridor's end and stays there. Its greedy improvement takes the coins everywhere but at the very end.
"""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Array, Float, Integer
from numpy.typing import ArrayLike

from ggpi import rewards
from ggpi.data import StateSpec
from ggpi.envs.gridworlds import ACTIONS, grid
from ggpi.mdp.tabular import TabularMDP
from ggpi.rewards import Reward

RIGHT = ACTIONS.index("right")


@dataclass(frozen=True)
class CoinCorridor:
    """The environment, for `collect`, and the finite MDP behind it, for exact values."""

    length: int = 6
    """Cells of the corridor."""
    coins: tuple[float, float] = (0.2, 0.1)
    """Rewards of the first and the last cell of the upper row."""
    noise: float = 0.2
    """Largest error of an observation, in cells."""

    spec = StateSpec(("column", "row"))

    @cached_property
    def mdp(self) -> TabularMDP:
        row = "#" + " " * self.length + "#"
        return grid("\n".join(["#" * len(row), row, row, "#" * self.length + " #", "#" * len(row)]))

    @cached_property
    def centres(self) -> Float[np.ndarray, "S 2"]:
        """The positions of the cells."""
        rows, columns = np.array(self.mdp.labels).T
        return np.stack([columns - (self.length + 1) / 2, 2.0 - rows], axis=1).astype(np.float32)

    @cached_property
    def arrival_rewards(self) -> Float[np.ndarray, "S"]:
        """The reward on arriving in each cell."""
        rows, columns = np.array(self.mdp.labels).T
        coins = np.interp(columns, [1, self.length], self.coins)
        return np.select([rows == 1, rows == 3], [coins, 1.0], 0.0)

    @property
    def observation_space(self) -> Box:
        return Box(-self.length, self.length, (2,), np.float32)

    @property
    def action_space(self) -> Discrete:
        return Discrete(len(ACTIONS))

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """First observations of n episodes, in any cell."""
        return self.observe(rng.integers(self.mdp.num_states, size=n), rng)

    def step(
        self, states: Float[np.ndarray, "n 2"], actions: ArrayLike, rng: np.random.Generator
    ) -> Float[np.ndarray, "n 2"]:
        """One step of each state [n, 2]."""
        return self.observe(self.mdp.step(self.cell(states), np.asarray(actions), rng), rng)

    def observe(self, cells: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "n 2"]:
        """Observations of cells [n]."""
        seen = self.centres[cells]
        return (seen + rng.uniform(-self.noise, self.noise, seen.shape)).astype(np.float32)

    def cell(self, states: Float[np.ndarray, "n 2"]) -> Integer[np.ndarray, "n"]:
        """The nearest cell of each state."""
        return ((states[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)

    def reward(self) -> Reward:
        """The reward on arriving in a state vector; samples of models need not be near a cell."""
        return rewards.arrival(
            _Arrival(jnp.asarray(self.centres), jnp.asarray(self.arrival_rewards, jnp.float32))
        )


class _Arrival(eqx.Module):
    """The reward of the nearest cell."""

    centres: Float[Array, "S 2"]
    rewards: Float[Array, "S"]

    def __call__(self, state: Float[Array, "2"]) -> Float[Array, ""]:
        return self.rewards[((self.centres - state) ** 2).sum(axis=-1).argmin()]
