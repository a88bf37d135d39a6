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

from ggpi.compiling import fast_jit
from ggpi.evaluation.payment import OnHost, Table, checked_payment, first_bad_sample, over, payment
from ggpi.evaluation.segments import segments_of
from ggpi.evaluation.tree import Block, build_tree, draw, worth
from ggpi.ghm.base import GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.ghm.frame import stack_modules
from ggpi.ghm.losses import each
from ggpi.ghm.model import AbstractModel
from ggpi.noise import quick
from ggpi.policies.bank import PolicyBank
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


class Models(eqx.Module):
    """The models of all horizons and the policies of each block, as the tree of segments asks for them.

    Paper: Alg 2
    """

    models: dict[float, Any]
    bank: PolicyBank
    terminal: Callable[[Any], Any] | None

    def act(self, block: Block, x: Any, *, key: Key) -> Any:
        """Actions of the block's policies for x [rows, n, …]."""
        return self.bank.among(block.policies).sample_each(x, key=key)

    def move(self, block: Block, x: Any, action: Any, *, key: Key) -> Any:
        """The ends of segments that start in x with these actions; a terminal state is never left."""
        models, rows = self.models[block.horizon], np.array(block.policies)
        if len(rows) < len(self.bank):
            models = jax.tree.map(lambda leaf: leaf[rows], models)
        if isinstance(models, AbstractModel):
            noise = jax.random.normal(quick(key), (*x.shape[:2], models.noise_size))
            end = each(lambda model, *one: model.push(*one), models, x, action, noise)
        else:
            keys = jax.random.split(key, len(rows))
            end = jax.vmap(lambda model, x, a, key: model.sample(x, a, key=key))(models, x, action, keys)
        if self.terminal is None:
            return end
        stays = jax.vmap(jax.vmap(self.terminal))(x)
        return jnp.where(stays.reshape(*stays.shape, *[1] * (x.ndim - 2)), x, end)


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
        self._models = _models(ghms, terminal)
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
        best, action = _choose(self._models.bank, heads, mean, states, first, choice_key)
        return mean, stderr, np.asarray(best), np.asarray(action), levels

    def _first_actions(self, states: jax.Array, key: Key) -> jax.Array | None:
        """First actions to score [K, B, C, …]; None leaves them to the heads, sample by sample."""
        if self.first_actions == "head":
            return None
        if self.first_actions == "all":
            shape = (len(self.ghms.policies), len(states), self._num_actions)
            return jnp.broadcast_to(jnp.arange(self._num_actions, dtype=jnp.int32), shape)
        return _candidates(self._models.bank, states, int(self.first_actions), key)

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
            parts.append((*_pooled([part[:2] for part in drawn], size), drawn[0][2]))
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
        mean, variance = _values_on_host(given, *settings, key) if on_host else _values(given, *settings, key)
        drawn = _drawn(given, *settings[:2], key) if keep or not np.isfinite(mean).all() else []
        if not np.isfinite(mean).all():
            _refuse(given, drawn)
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


@fast_jit
def _values(given: tuple, num_samples: int, form: Any, gamma: float, key: Key) -> tuple[Any, Any]:
    """Means and variances [N, B, C] of what chains earn."""
    drawn = _draw(given, num_samples, form, key)
    return _moments(given, drawn, form, gamma)


def _values_on_host(given: tuple, num_samples: int, form: Any, gamma: float, key: Key) -> tuple[Any, Any]:
    """The same, with a reward that only Python can compute."""
    return _moments(given, _drawn(given, num_samples, form, key), form, gamma)


def _draw(given: tuple, num_samples: int, form: Any, key: Key) -> list:
    tree, models, _, _, first = given
    if first is not None:
        first = first.reshape(len(first), -1, *first.shape[3:])
    return draw(tree, models, _starts(given), first, num_samples, form=form, key=key)


_drawn = fast_jit(_draw)


def _starts(given: tuple) -> Any:
    """The states [P, …] that chains start in: each once for every first action."""
    _, _, _, states, first = given
    return states if first is None else jnp.repeat(states, first.shape[2], axis=0)


def _moments(given: tuple, drawn: list, form: Any, gamma: float) -> tuple[Any, Any]:
    tree, models, values, states, first = given
    starts, num_first = _starts(given), 1 if first is None else first.shape[2]
    if isinstance(values, Each):
        values = jax.tree.map(lambda leaf: jnp.repeat(leaf, num_first, axis=0), values)
    earned = worth(tree, payment(values, form, models.terminal, gamma), starts, drawn, form=form)
    if models.terminal is not None:
        earned = jnp.where(over(models.terminal, starts[None, :, None]), 0.0, earned)
    shape = (len(earned), len(states), num_first)
    return earned.mean(axis=-1).reshape(shape), earned.var(axis=-1).reshape(shape)


@eqx.filter_jit
def _choose(bank: PolicyBank, heads: Any, mean: Any, states: Any, first: Any, key: Key) -> tuple[Any, Any]:
    """The best GSP [B], ties broken at random, and the action: its head's, or the first action that it scored."""
    tie_key, act_key = jax.random.split(key)
    scores = jnp.moveaxis(mean, 1, 0).reshape(len(states), -1)
    lots = jax.random.uniform(tie_key, scores.shape)
    place = jnp.where(scores == scores.max(axis=1, keepdims=True), lots, -1.0).argmax(axis=1)
    best, tried = place // mean.shape[2], place % mean.shape[2]
    if first is None:
        return best, bank.sample(jnp.asarray(heads)[best], states, key=act_key)
    return best, first[jnp.asarray(heads)[best], jnp.arange(len(states)), tried]


@eqx.filter_jit
def _candidates(bank: PolicyBank, states: Any, count: int, key: Key) -> Any:
    """`count` actions of each policy in each state [K, B, C, …]."""
    asked = jnp.broadcast_to(states[None, :, None], (len(bank), len(states), count, *states.shape[1:]))
    return bank.sample_each(asked, key=key)


def _pooled(parts: list, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over calls of `size` samples each (∞ for a single sample)."""
    means = np.stack([np.asarray(mean, float) for mean, _ in parts])
    n = size * len(parts)
    variance = np.mean([np.asarray(variance, float) for _, variance in parts], axis=0) + means.var(axis=0)
    return means.mean(axis=0), np.sqrt(variance / (n - 1)) if n > 1 else np.full(means.shape[1:], np.inf)


def _refuse(given: tuple, drawn: list) -> None:
    """Says which sample made a value infinite or NaN."""
    values = given[2]
    for part in (part for level in drawn for part in level):
        action = () if part.end_action is None else (part.end_action,)
        if not np.isfinite(np.asarray(part.x, float)).all():
            raise ArithmeticError("a model sampled states that are not finite; look at it with ggpi.diagnose")
        if said := first_bad_sample(values, part.x, *action):
            raise ValueError(f"{said}; rewards are finite numbers")
    raise ValueError("the reward of the state itself is not a finite number")


def _models(ghms: GHMs, terminal: Callable[[Any], Any] | None) -> Models:
    """Models stacked over policies; finite MDPs know their terminal states."""
    models: dict[float, Any] = dict(ghms.models)
    for horizon, group in ghms.models.items():
        if not isinstance(group, eqx.Module):
            exact = [ghm.sampler if isinstance(ghm, ExactGHM) else ghm for ghm in group]
            models[horizon] = stack_modules(exact)
    first = ghms.segment(0, None)
    if terminal is None and isinstance(first, ExactGHM) and first.mdp.terminal.any():
        terminal = Table(jnp.asarray(first.mdp.terminal))
    return Models(models, PolicyBank(tuple(ghms.policies)), terminal)


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
        alpha = ghms.alphas[0] if len(ghms.alphas) == 1 or depth == 1 else ghms.alphas
        return compositions(len(ghms.policies), depth, alpha)
    chosen = gsp_set(gsps)
    ghms.check(chosen)
    if missing := missing_suffixes(chosen):
        names = ", ".join(gsp.name(ghms.names) for gsp in missing)
        raise ValueError(f"the set is not suffix-closed; it lacks {names} (ggpi.suffix_closure adds them)")
    return chosen


def _checked_first_actions(given: Any, num_actions: int | None) -> Any:
    if given is None:
        return "head" if num_actions is None else "all"
    if given == "all" and num_actions is None:
        raise ValueError("continuous actions cannot all be scored; give 'head' or how many to score")
    if given not in ("head", "all") and (not isinstance(given, int) or given < 1):
        raise ValueError(f"first_actions is 'head', 'all' or a number of at least 1, got {given!r}")
    return given
