"""What an agent warns of, once: states or codes unlike those of its models, and a reward that no sample reaches."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ggpi.ghm.samplers import ModelSampler, TableSampler
from ggpi.planning.chains import Problem
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.search import AbstractPlanner
from ggpi.planning.unfamiliar import UnfamiliarCodeWarning, unfamiliar_codes
from ggpi.rewards import Reward
from ggpi.types import Key, Numbers

FAR = 15.0
"""Standard deviations from the mean of the data in one coordinate. Of 20,000 steps in each of seven environments of
MuJoCo and classic control none is farther than 13 from the mean of its own data (in most, none farther than 6)."""
TIMES = 2.0
"""How many times as far from every landmark as 99.9% of the data."""
LEVEL = 4
"""Frames between the warning and the line that calls `act` or `plan`."""


class NoRewardWarning(UserWarning):
    """Every plan has the value 0, because no sampled future reaches the reward."""


class UnfamiliarStateWarning(UserWarning):
    """An agent acts in a state that is far from the data that its models learned from."""


class Warner:
    """Says each thing once; agents for other rewards share what was said of states."""

    def __init__(self, sampler: ModelSampler | TableSampler, graph: JumpyGraph | None = None):
        self.graph = graph
        frame = sampler.models[0].frame if isinstance(sampler, ModelSampler) else None
        self.frame = frame if frame is not None and frame.kept else None
        self.terminal = sampler.terminal
        self.said: set[str] = set()
        if self.frame is not None:
            moments = np.concatenate([self.frame.state_mean, self.frame.state_scale], axis=1)
            self.mean, self.scale = np.split(np.unique(moments, axis=0), 2, axis=1)

    def _about_landmarks(self, states: Numbers) -> None:
        """Warns of a state [B, …] that is far from all landmarks of the graph."""
        if self.graph is None or "landmarks" in self.said:
            return
        apart = self.graph.distance(states)
        if self.terminal is not None:
            apart = np.where(jax.vmap(self.terminal)(jnp.asarray(states)), 0.0, apart)
        if apart.max() <= TIMES * self.graph.reach:
            return
        self.said.add("landmarks")
        warnings.warn(
            f"this state is far from every landmark of the graph: the nearest is at a distance of {apart.max():.3g}, "
            f"in units of the data, of which 99.9% are within {self.graph.reach:.3g}. The graph knows nothing of such "
            "states: make it from data that has some near them. This warning is shown once",
            UnfamiliarStateWarning,
            stacklevel=LEVEL + 1,
        )

    def about_states(self, states: Any) -> None:
        """Warns of a state [B, D] that is far from the data of every model, or from every landmark of a graph."""
        self._about_landmarks(states)
        if self.frame is None or "states" in self.said:
            return
        seen = np.asarray(states)[:, self.frame.kept]
        apart = np.abs(seen - self.mean[:, None]) / self.scale[:, None]
        farthest = apart.max(axis=2).min(axis=0)
        if farthest.max() <= FAR:
            return
        self.said.add("states")
        row = int(farthest.argmax())
        of = int(apart[:, row].max(axis=1).argmin())
        i = int(apart[of, row].argmax())
        warnings.warn(
            f"this state is far from the data that the models learned from: its coordinate {self.frame.kept[i]} is "
            f"{seen[row, i]:.3g}, in the data it is {self.mean[of, i]:.3g} ± {self.scale[of, i]:.3g}. Models know "
            "nothing of such states. Was the data in other units, or normalised (VecNormalize)? This warning is shown "
            "once",
            UnfamiliarStateWarning,
            stacklevel=LEVEL,
        )

    def about_codes(self, planner: AbstractPlanner, problem: Problem, states: Numbers, key: Key) -> None:
        """Warns of codes that a function proposes in states [B, …], far outside of those that the models know."""
        if "codes" in self.said:
            return
        found = unfamiliar_codes(planner, problem, states, key)
        if found is None:
            return
        self.said.add("codes")
        warnings.warn(f"{found}. This warning is shown once", UnfamiliarCodeWarning, stacklevel=LEVEL + 1)

    def about_values(self, mean: np.ndarray, states: Any, reward: Reward, num_samples: int) -> None:
        """Warns if every plan in every state has the value 0, unless that is clear from the reward or the states."""
        if "values" in self.said:
            return
        if mean.any():
            self.said.add("values")  # it can be reached
            return
        is_nothing = not callable(reward.values) and not np.any(reward.values)
        if is_nothing or (self.terminal is not None and np.all(jax.vmap(self.terminal)(states))):
            return
        self.said.add("values")
        more = "more depth" if self.graph is None else "a graph with more landmarks and jumps"
        warnings.warn(
            f"all plans have the value 0 here: none of the {num_samples} futures sampled for each reaches the "
            f"reward, so the agent chooses at random. Try more samples (num_samples), {more}, or a reward that is "
            "reached more often, such as a target with a larger radius. This warning is shown once",
            NoRewardWarning,
            stacklevel=LEVEL,
        )

    def for_other_reward(self) -> Warner:
        """The same, which has said nothing of values yet."""
        other = object.__new__(Warner)
        other.__dict__ |= self.__dict__
        other.said = self.said - {"values"}
        return other
