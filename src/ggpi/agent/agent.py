"""The agent: a state and a reward in, an action out, with nothing learned in between.

For every switching policy ν of a suffix-closed set the agent estimates V^ν(x) by composing samples of models, and
acts with the head of the best one (continuous actions, as in the paper); or it scores first actions by Q^ν(x, a),
all of them when they are discrete, some of the heads' when they are not, and takes the best. The whole set is one
compiled program: samples are shared along common prefixes, models and policies are stacked, and the reward's
parameters are arguments, so that a new target costs no compilation.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.forking import check_process
from ggpi._jax.random import checked_key
from ggpi.agent.checks import (
    check_policies,
    checked_first_actions,
    checked_set,
    checked_spaces,
    checked_states,
    warn_if_slow,
)
from ggpi.agent.warnings import Warner
from ggpi.evaluation.planning import (
    candidates,
    choose,
    drawn_states,
    pooled,
    refuse,
    stacked_models,
    values_of,
    values_on_host,
)
from ggpi.evaluation.rewards import OnHost, checked_payment
from ggpi.evaluation.stepping import (
    one_step_model,
    step_of,
    stepped_states,
    stepped_values,
    stepped_values_on_host,
)
from ggpi.evaluation.tree import build_tree
from ggpi.ghm.base import AbstractGHM, GHMs
from ggpi.rewards import Each, Reward, as_reward
from ggpi.switching import GSP, GSPs
from ggpi.types import Key, whole


class Programs(NamedTuple):
    """How values are estimated: means and variances [N, B, C], and what was sampled for them."""

    compiled: Any
    on_host: Any
    drawn: Any


JUMP = Programs(values_of, values_on_host, drawn_states)
STEP = Programs(stepped_values, stepped_values_on_host, stepped_states)
LARGEST = 2**28
"""Numbers that one call may hold (1 GiB), samples and what models compute them with; larger plans take several."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What the agent considered in a state, or in each of B states, and what it chose."""

    gsps: GSPs
    value: np.ndarray
    """[N]: the estimate of V^ν(x); [N, C] when C first actions were scored. For a batch [B, N] or [B, N, C]."""
    stderr: np.ndarray
    """Its standard error."""
    best: np.ndarray
    """The place of the chosen GSP in the set."""
    action: np.ndarray
    levels: list[list[np.ndarray]]
    paths: list[list[tuple[int, int]]]

    def samples(self, gsp: int) -> list[np.ndarray]:
        """States [n, D] sampled at the ends of a GSP's segments; with the leading axes of a batch and of first actions."""
        return [level[b][place] for level, (b, place) in zip(self.levels, self.paths[gsp], strict=False)]


class GGPIAgent:
    """Acts greedily over a suffix-closed set of switching policies, for any reward.

    `depth` takes the set Π_m over all policies (1 is GPI), `gsps` any other set. `terminal(state)`, a function of
    JAX, tells where the world ends; `seed` is that of `predict`. `first_actions` says which are scored:

    - "head": none, the head of the best GSP acts;
    - "all": every discrete action, by models of what follows it after a geometric time;
    - "step": every discrete action, by a model of the next state and by the GSPs' values there;
    - a number: so many of each head's actions.

    The default is "all" for the exact models of finite MDPs and "head" for learned models: scoring actions leads into
    states where no base policy was, and so where models were not trained.

    Paper: Alg 2, Thm 4.2
    """

    def __init__(
        self,
        ghms: GHMs,
        reward: Reward | Any,
        *,
        depth: int | None = None,
        gsps: GSPs | Iterable[GSP] | None = None,
        num_samples: int = 100,
        first_actions: Literal["head", "all", "step"] | int | None = None,
        terminal: Callable[[Any], Any] | None = None,
        seed: int = 0,
    ):
        check_process()
        self._key, self._calls = jax.random.key(seed), itertools.count()
        num_samples = whole(num_samples, "num_samples")
        check_policies(ghms)
        self.ghms, self.num_samples, self.gsps = ghms, num_samples, checked_set(ghms, depth, gsps)
        warn_if_slow(self.gsps, num_samples)
        self._models = stacked_models(ghms, terminal)
        self._spaces = checked_spaces(ghms, self._models)
        self._warner = Warner(self._models, ghms.gamma)
        self.first_actions = checked_first_actions(first_actions, self._spaces.num_actions, ghms)
        is_stepping = self.first_actions == "step"
        self._step = step_of(one_step_model(ghms), self.gsps) if is_stepping else None
        self._set_reward(reward)

    def act(self, state: Any, *, key: Key) -> np.ndarray:
        """An action for a state, or one for each of a batch."""
        states, batch = self._checked_states(state)
        _, _, _, action, _ = self._decide(states, False, checked_key(key))
        return action.reshape((*batch, *action.shape[1:]))

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """An action, and `state` as it was given: what Stable-Baselines3 calls a policy, so that its loops work.

        The agent has no memory and nothing to make deterministic: only `observation` counts. Its noise comes from the
        `seed` that the agent was made with and from the number of calls before this one.
        """
        return self.act(observation, key=jax.random.fold_in(self._key, next(self._calls))), state

    def plan(self, state: Any, *, key: Key) -> Plan:
        """Every GSP's value with its standard error, the choice, and the samples that speak for it.

        Paper: Fig 6
        """
        states, batch = self._checked_states(state)
        mean, stderr, best, action, levels = self._decide(states, True, checked_key(key))
        values = [np.moveaxis(part, 1, 0) for part in (mean, stderr)]
        if self.first_actions == "head":
            values = [part[..., 0] for part in values]
        value, stderr, best, action = (
            part.reshape((*batch, *part.shape[1:])) for part in (*values, best, action)
        )
        starts = batch if self.first_actions == "head" else (*batch, mean.shape[2])
        levels = [
            [np.reshape(part, (len(part), *starts, *part.shape[2:])) for part in level] for level in levels
        ]
        return Plan(self.gsps, value, stderr, best, action, levels, self._paths)

    def with_reward(self, reward: Reward | Any) -> GGPIAgent:
        """The same agent for another reward; one of the same kind needs no new compilation."""
        other = copy.copy(self)
        other._calls = itertools.count()
        other._warner = self._warner.for_other_reward()
        other._set_reward(reward)
        return other

    def _set_reward(self, reward: Reward | Any) -> None:
        reward, previous = as_reward(reward), getattr(self, "reward", None)
        spaces = self._spaces
        values = checked_payment(reward, spaces.state, spaces.action, spaces.sizes)
        self.reward = Reward(reward.form, values)
        if previous is None or previous.form != reward.form:
            paths = [gsp.segments(self.ghms.gamma) for gsp in self.gsps]
            self._tree, self._paths = build_tree(paths, self.ghms, reward.form)

    def _decide(self, states: jax.Array, keep: bool, key: Key) -> tuple[Any, ...]:
        """Means and standard errors [N, B, C], the best GSP [B], its action [B, …], and what was sampled."""
        self._warner.about_states(states)
        value_key, first_key, choice_key = jax.random.split(key, 3)
        first = self._first_actions(states, first_key)
        mean, stderr, levels = self._estimate(states, first, keep, value_key)
        self._warner.about_values(mean, states, self.reward.values, self.num_samples)
        heads = np.array([gsp.head for gsp in self.gsps])
        best, action = choose(self._models.bank, heads, mean, states, first, choice_key)
        return mean, stderr, np.asarray(best), np.asarray(action), levels

    def _first_actions(self, states: jax.Array, key: Key) -> jax.Array | None:
        """First actions to score [K, B, C, …]; None leaves them to the heads, sample by sample."""
        if self.first_actions == "head":
            return None
        if self.first_actions in ("all", "step"):
            num_actions = self._spaces.num_actions
            shape = (len(self.ghms.policies), len(states), num_actions)
            return jnp.broadcast_to(jnp.arange(num_actions, dtype=jnp.int32), shape)
        return candidates(self._models.bank, states, int(self.first_actions), key)

    def _estimate(self, states, first, keep: bool, key: Key) -> tuple[np.ndarray, np.ndarray, Any]:
        """Means and standard errors [N, B, C], in several calls when one would be too large."""
        num_first = 1 if first is None else first.shape[2]
        at_once, size = self._call_size(len(states), num_first)
        calls = -(-self.num_samples // size)
        parts = []
        for i, begin in enumerate(range(0, len(states), at_once)):
            rows = np.minimum(begin + np.arange(at_once), len(states) - 1)  # equal shapes: one compilation
            keys = jax.random.split(jax.random.fold_in(key, i), calls)
            drawn = [self._sample(states, first, rows, size, keep, k) for k in keys]
            parts.append((*pooled([part[:2] for part in drawn], size), drawn[0][2]))
        mean, stderr = (
            np.concatenate([part[i] for part in parts], axis=1)[:, : len(states)] for i in range(2)
        )
        starts = len(states) * num_first  # the padding of the last part is cut off
        levels = jax.tree.map(lambda *x: np.concatenate(x, axis=1)[:, :starts], *(part[2] for part in parts))
        return mean, stderr, levels

    def _call_size(self, num_states: int, num_first: int) -> tuple[int, int]:
        """How many states, and samples of each, one call takes."""
        groups = self._models.models.values()
        numbers = max(group.working_size if isinstance(group, AbstractGHM) else 1 for group in groups)
        nodes = sum(len(block.parent) for level in self._tree.levels for block in level)
        largest = max(LARGEST // (nodes * num_first * numbers), 1)
        at_once = min(num_states, largest)
        return at_once, min(self.num_samples, max(largest // at_once, 1))

    def _sample(self, states, first, rows, size: int, keep: bool, key: Key) -> tuple[Any, Any, Any]:
        """Mean and variance [N, B, C] over one call's samples, and their states if they are kept."""
        values = self.reward.values
        if len(rows) < len(states):
            states, first = states[rows], None if first is None else first[:, rows]
            values = jax.tree.map(lambda leaf: leaf[rows], values) if isinstance(values, Each) else values
        given = self._tree, self._models, values, states, first
        programs, given = (JUMP, given) if self._step is None else (STEP, (*given, self._step))
        settings = size, self.reward.form, self.ghms.gamma
        estimate = programs.on_host if isinstance(values, OnHost) else programs.compiled
        mean, variance = estimate(given, *settings, key)
        drawn = programs.drawn(given, *settings[:2], key) if keep or not np.isfinite(mean).all() else []
        if not np.isfinite(mean).all():
            refuse(given, drawn)
        return mean, variance, [[part.x for part in level] for level in drawn]

    def _checked_states(self, state: Any) -> tuple[jax.Array, tuple[int, ...]]:
        """States [B, …] and the shape of the batch: () for a single state."""
        check_process()
        states, batch = checked_states(state, self._spaces)
        rewards = jax.tree.leaves(self.reward.values) if isinstance(self.reward.values, Each) else ()
        if rewards and batch != (len(rewards[0]),):
            raise ValueError(
                f"there are {len(rewards[0])} rewards, one for each state of a batch; got a batch {list(batch)}"
            )
        return states.reshape(-1, *self._spaces.state.shape), batch
