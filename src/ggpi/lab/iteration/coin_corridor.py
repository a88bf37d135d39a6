"""A gridworld seen through vectors, in which greedy improvement forgets what it will need: Example D.4 in two rows.

    c c c c c c c c      coins: a little on every arrival, the more the further to the left
    . . . . . . . .      the corridor pays nothing
                  G      the goal pays 1 on every arrival

An observation is (column, row), in cells from the middle, plus uniform noise: no state is seen twice, and the cell
is the nearest one. Four actions as in all gridworlds here; a bump stays. A policy that always goes right walks to
the corridor's end and stays there. Its greedy improvement takes the coins everywhere but at the very end.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi import rewards
from ggpi.data import StateSpec
from ggpi.envs.gridworlds import ACTIONS, grid
from ggpi.mdp.tabular import TabularMDP
from ggpi.rewards import Reward

RIGHT = ACTIONS.index("right")


@dataclass(frozen=True)
class CoinCorridor:
    """The world, for `collect`, and the finite MDP behind it, for exact values."""

    length: int = 6
    """Cells of the corridor."""
    coins: tuple[float, float] = (0.2, 0.1)
    """What the first and the last cell of the upper row pay."""
    noise: float = 0.2
    """Largest error of an observation, in cells."""

    spec = StateSpec(("column", "row"))

    @cached_property
    def mdp(self) -> TabularMDP:
        row = "#" + " " * self.length + "#"
        return grid("\n".join(["#" * len(row), row, row, "#" * self.length + " #", "#" * len(row)]))

    @cached_property
    def centres(self) -> np.ndarray:
        """Where the cells are [S, 2]."""
        rows, columns = np.array(self.mdp.labels).T
        return np.stack([columns - (self.length + 1) / 2, 2.0 - rows], axis=1).astype(np.float32)

    @cached_property
    def paid(self) -> np.ndarray:
        """What arriving in each cell pays [S]."""
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
        """Anywhere."""
        return self.observe(rng.integers(self.mdp.num_states, size=n), rng)

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> np.ndarray:
        """One step of each state [n, 2]."""
        return self.observe(self.mdp.step(self.cell(states), np.asarray(actions), rng), rng)

    def observe(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """What is seen in cells [n]."""
        seen = self.centres[cells]
        return (seen + rng.uniform(-self.noise, self.noise, seen.shape)).astype(np.float32)

    def cell(self, states: Any) -> np.ndarray:
        """The nearest cell of each state [n, 2]."""
        return ((np.asarray(states)[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)

    def reward(self) -> Reward:
        """What arriving in a state vector pays; also for samples of models that lie beside all cells."""
        return rewards.arrival(_Paid(jnp.asarray(self.centres), jnp.asarray(self.paid, jnp.float32)))


class _Paid(eqx.Module):
    centres: jax.Array
    paid: jax.Array

    def __call__(self, state):
        return self.paid[((self.centres - state) ** 2).sum(axis=-1).argmin()]
