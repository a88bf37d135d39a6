"""The agent: a state and a reward in, an action out, with nothing learned in between.

For every switching policy ν of a suffix-closed set the agent estimates V^ν(x) by composing samples of models, and
acts with the head of the best one (continuous actions, as in the paper); or it scores first actions by Q^ν(x, a),
all of them when they are discrete, some of the heads' when they are not, and takes the best. The whole set is one
compiled program: samples are shared along common prefixes, models and policies are stacked, and the reward's
parameters are arguments, so that a new target costs no compilation.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi.evaluation.payment import OnHost, checked_payment
from ggpi.evaluation.planning import (
    Models,
    candidates,
    choose,
    drawn_states,
    pooled,
    refuse,
    stacked_models,
    values_of,
    values_on_host,
)
from ggpi.evaluation.segments import segments_of
from ggpi.evaluation.tree import Block, build_tree
from ggpi.ghm.base import GHMs
from ggpi.ghm.model import AbstractModel
from ggpi.rewards import Each, Reward, as_reward
from ggpi.switching import GSP, GSPs, compositions, gsp_set, missing_suffixes
from ggpi.typing import Key

LARGEST = 2**26
"""Numbers that the sampled states of one call may hold; larger plans take several calls."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What the agent considered in a state, or in each of B states, and what it chose.

    Paper: Alg 2, Fig 6
    """

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
        """States [n, D] sampled at the ends of a GSP's segments; with the leading axes of a batch and of first actions.

        Paper: Fig 6
        """
        return [level[b][place] for level, (b, place) in zip(self.levels, self.paths[gsp], strict=False)]


class GGPIAgent:
    """Acts greedily over a suffix-closed set of switching policies, for any reward.

    `depth` takes the set Π_m over all policies (1 is GPI), `gsps` any other set. `first_actions` is "head" to
    act with the head of the best GSP, "all" to score every discrete action, or how many of each head's actions
    to score; by default "all" for discrete actions and "head" for continuous ones. `terminal(state)` tells
    where the world ends.

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
        first_actions: Literal["head", "all"] | int | None = None,
        terminal: Callable[[Any], Any] | None = None,
    ):
        if num_samples < 1:
            raise ValueError(f"num_samples is at least 1, got {num_samples}")
        self.ghms, self.num_samples, self.gsps = ghms, num_samples, _checked_set(ghms, depth, gsps)
        self._models = stacked_models(ghms, terminal)
        self._state, self._action, self._num_actions = _spaces(ghms, self._models)
        self.first_actions = _checked_first_actions(first_actions, self._num_actions)
        self._set_reward(reward)

    def act(self, state: Any, *, key: Key) -> np.ndarray:
        """An action for a state, or one for each of a batch.

        Paper: Alg 2
        """
        states, batch = self._checked_states(state)
        _, _, _, action, _ = self._decide(states, False, key)
        return action.reshape((*batch, *action.shape[1:]))

    def plan(self, state: Any, *, key: Key) -> Plan:
        """Every GSP's value with its standard error, the choice, and the samples that speak for it.

        Paper: Alg 2, Fig 6
        """
        states, batch = self._checked_states(state)
        mean, stderr, best, action, levels = self._decide(states, True, key)
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
        """The same agent for another reward; one of the same kind needs no new compilation.

        Paper: Alg 2
        """
        other = copy.copy(self)
        other._set_reward(reward)
        return other

    def _set_reward(self, reward: Reward | Any) -> None:
        reward, previous = as_reward(reward), getattr(self, "reward", None)
        self.reward = Reward(reward.form, checked_payment(reward, self._state, self._action))
        if previous is None or previous.form != reward.form:
            paths = [segments_of(gsp, self.ghms.gamma) for gsp in self.gsps]
            self._tree, self._paths = build_tree(paths, self.ghms, reward.form)

    def _decide(self, states: jax.Array, keep: bool, key: Key) -> tuple[Any, ...]:
        """Means and standard errors [N, B, C], the best GSP [B], its action [B, …], and what was sampled."""
        value_key, first_key, choice_key = jax.random.split(key, 3)
        first = self._first_actions(states, first_key)
        mean, stderr, levels = self._estimate(states, first, keep, value_key)
        heads = np.array([gsp.head for gsp in self.gsps])
        best, action = choose(self._models.bank, heads, mean, states, first, choice_key)
        return mean, stderr, np.asarray(best), np.asarray(action), levels

    def _first_actions(self, states: jax.Array, key: Key) -> jax.Array | None:
        """First actions to score [K, B, C, …]; None leaves them to the heads, sample by sample."""
        if self.first_actions == "head":
            return None
        if self.first_actions == "all":
            shape = (len(self.ghms.policies), len(states), self._num_actions)
            return jnp.broadcast_to(jnp.arange(self._num_actions, dtype=jnp.int32), shape)
        return candidates(self._models.bank, states, int(self.first_actions), key)

    def _estimate(self, states, first, keep: bool, key: Key) -> tuple[np.ndarray, np.ndarray, Any]:
        """Means and standard errors [N, B, C], in several calls when one would be too large."""
        num_first = 1 if first is None else first.shape[2]
        nodes = sum(len(block.parent) for level in self._tree.levels for block in level)
        largest = max(LARGEST // (nodes * num_first * states[0].size), 1)
        at_once = min(len(states), largest)
        size = min(self.num_samples, max(largest // at_once, 1))
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
        levels = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *(part[2] for part in parts))
        return mean, stderr, levels

    def _sample(self, states, first, rows, size: int, keep: bool, key: Key) -> tuple[Any, Any, Any]:
        """Mean and variance [N, B, C] over one call's samples, and their states if they are kept."""
        values = self.reward.values
        if len(rows) < len(states):
            states, first = states[rows], None if first is None else first[:, rows]
            values = jax.tree.map(lambda leaf: leaf[rows], values) if isinstance(values, Each) else values
        given = self._tree, self._models, values, states, first
        settings = size, self.reward.form, self.ghms.gamma
        on_host = isinstance(values, OnHost)
        mean, variance = (
            values_on_host(given, *settings, key) if on_host else values_of(given, *settings, key)
        )
        drawn = drawn_states(given, *settings[:2], key) if keep or not np.isfinite(mean).all() else []
        if not np.isfinite(mean).all():
            refuse(given, drawn)
        return mean, variance, [[part.x for part in level] for level in drawn]

    def _checked_states(self, state: Any) -> tuple[jax.Array, tuple[int, ...]]:
        """States [B, …] and the shape of the batch: () for a single state."""
        states = jnp.asarray(state, self._state.dtype)
        inner = len(self._state.shape)
        batch = states.shape[: states.ndim - inner]
        if states.ndim < inner or states.shape[len(batch) :] != self._state.shape or len(batch) > 1:
            wanted = list(self._state.shape)
            raise ValueError(
                f"a state has shape {wanted}, a batch {['B', *wanted]}; got {list(states.shape)}"
            )
        if isinstance(self.reward.values, Each) and batch != (
            num := len(jax.tree.leaves(self.reward.values)[0]),
        ):
            raise ValueError(
                f"there are {num} rewards, one for each state of a batch; got {list(states.shape)}"
            )
        return states.reshape(-1, *self._state.shape), batch


def _spaces(ghms: GHMs, models: Models) -> tuple[Any, Any, int | None]:
    """Shapes of a state and of an action, and the number of discrete actions; all parts are tried together."""
    any_models = models.models[ghms.gamma]
    if isinstance(any_models, AbstractModel):
        state = jax.ShapeDtypeStruct((any_models.frame.state_size,), jnp.float32)
        num_actions = any_models.frame.num_actions
    else:
        state = jax.ShapeDtypeStruct((), jnp.int32)
        num_actions = np.shape(ghms.policies[0])[1]
    for horizon, group in models.models.items():
        stacked = {len(leaf) for leaf in jax.tree.leaves(eqx.filter(group, eqx.is_array))}
        if stacked != {len(ghms.policies)}:
            raise ValueError(
                f"{len(ghms.policies)} policies need as many models at horizon {horizon}, got {stacked}"
            )
    return state, _checked_action(ghms, models, state), num_actions


def _checked_action(ghms: GHMs, models: Models, state: Any) -> Any:
    """The shape of an action, after a try of every policy with every model, without numbers."""
    asked = jax.ShapeDtypeStruct((len(ghms.policies), 1, *state.shape), state.dtype)
    action, key = asked, jax.random.key(0)
    for horizon in models.models:
        block = Block(0, 0.0, 0.0, horizon, tuple(range(len(ghms.policies))), True)
        try:
            action = eqx.filter_eval_shape(models.act, block, asked, key=key)
            eqx.filter_eval_shape(models.move, block, asked, action, key=key)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"models at horizon {horizon} over states of shape {list(state.shape)} do not go together with the "
                f"policies {', '.join(ghms.names)}, whose actions have shape {list(action.shape[2:])}: {error}"
            ) from error
    return jax.ShapeDtypeStruct(action.shape[2:], action.dtype)


def _checked_set(ghms: GHMs, depth: int | None, gsps: GSPs | Iterable[GSP] | None) -> GSPs:
    if (depth is None) == (gsps is None):
        raise ValueError("give either a depth or a set of switching policies")
    if gsps is None:
        if depth is None or depth < 1:
            raise ValueError(f"depth is at least 1, got {depth}")
        return compositions(len(ghms.policies), depth, _alphas_of(ghms, depth))
    chosen = gsp_set(gsps)
    ghms.check(chosen)
    if missing := missing_suffixes(chosen):
        names = ", ".join(gsp.name(ghms.names) for gsp in missing)
        raise ValueError(f"the set is not suffix-closed; it lacks {names} (ggpi.suffix_closure adds them)")
    return chosen


def _alphas_of(ghms: GHMs, depth: int) -> tuple[float, ...]:
    """The α of each of depth − 1 switches."""
    alphas = ghms.alphas * (depth - 1) if len(ghms.alphas) == 1 or depth == 1 else ghms.alphas
    if len(alphas) != depth - 1:
        raise ValueError(
            f"depth {depth} needs models of one α, or of one for each of its {depth - 1} switches; these are of "
            f"{list(alphas)}. Learn models with other α's, or give gsps= instead"
        )
    return alphas


def _checked_first_actions(given: Any, num_actions: int | None) -> Any:
    if given is None:
        return "head" if num_actions is None else "all"
    if given == "all" and num_actions is None:
        raise ValueError("continuous actions cannot all be scored; give 'head' or how many to score")
    if given not in ("head", "all") and (not isinstance(given, int) or given < 1):
        raise ValueError(f"first_actions is 'head', 'all' or a number of at least 1, got {given!r}")
    return given
