"""Returns of plans that are rows of arrays: one program for a segment, scanned over the segments of all plans.

All plans share the random numbers of a segment, so that their differences are differences of what they do, and equal
prefixes have equal samples. A policy and a horizon that are arrays choose a model in one of three ways: the network for
all horizons takes both; of stacks of models the weights of one are taken; other Samplers, such as tables, are drawn
from at each of their horizons.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi.evaluation.queries import LARGEST, largest_call
from ggpi.evaluation.rewards import stay
from ggpi.ghm.network_sampler import NetworkSampler, OnePolicy
from ggpi.ghm.samplers import ModelSampler
from ggpi.planning.chains import Own, Problem, Selected, of_policy
from ggpi.planning.choices import Choices, Sequences
from ggpi.planning.plans import weights_of
from ggpi.switching import beta_of
from ggpi.types import Key, Numbers, Sampler


class Move(eqx.Module):
    """Segments of one policy at one horizon, for states [rows, …]."""

    own: Selected | Own | OnePolicy
    beta: Float[Array, ""]
    horizons: tuple[float, ...] = eqx.field(static=True)
    """Those that there are models for; none if there are models for all."""

    def act(self, state: Numbers, *, key: Key) -> Array:
        return self.own.act(state, key=key)

    def jump(self, state: Numbers, action: Numbers, *, key: Key) -> Array:
        if isinstance(self.own, OnePolicy):
            return self.own.jump(self.beta, state, action, key=key)
        return self._selected([self.own.jump(horizon, state, action, key=key) for horizon in self.horizons])

    def onward(self, state: Numbers, *, key: Key) -> Array:
        if isinstance(self.own, OnePolicy):
            return self.own.onward(self.beta, state, key=key)
        return self._selected([self.own.onward(horizon, state, key=key) for horizon in self.horizons])

    def _selected(self, ends: list[Array]) -> Array:
        return ends[0] if len(ends) == 1 else jnp.stack(ends)[nearest(self.beta, self.horizons)]


def nearest(beta: Float[Array, ""], horizons: tuple[float, ...]) -> Int[Array, ""]:
    """The place of a horizon in single precision."""
    return jnp.argmin(jnp.abs(jnp.asarray(horizons, jnp.float32) - beta))


def move_of(
    sampler: Sampler, choices: Choices, policy: Int[Array, ""] | Float[Array, "z"], beta: Float[Array, ""]
) -> Move:
    """The segments of a policy, its index or its code, at a horizon."""
    if isinstance(sampler, NetworkSampler):
        return Move(sampler.of_code(policy) if policy.ndim else sampler.of(policy), beta, ())
    horizons = sampler.gamma, *(beta_of(sampler.gamma, alpha) for alpha in choices.alphas)
    own = of_policy(sampler, policy, choices.num_policies)
    if isinstance(own, Own):
        models = [sampler_at(own.sampler, horizon) for horizon in horizons]
        place = nearest(beta, horizons)
        one = jax.tree.map(lambda *leaves: jnp.stack(leaves)[place], *models)
        own = Own(dataclasses.replace(own.sampler, models=(one,), horizons=horizons[:1]))
        horizons = horizons[:1]
    return Move(own, beta, horizons)


def sampler_at(sampler: ModelSampler, horizon: float) -> Any:
    """The stack of models at a horizon."""
    return sampler.models[sampler.horizons.index(horizon)]


class _Reached(NamedTuple):
    """Chains of all plans where a segment starts [N, batch, …]."""

    x: Array
    r: Array
    total: Array


class _Segments(NamedTuple):
    """The segments of all plans at one place."""

    m: Int[Array, ""]
    policy: Array
    beta: Float[Array, "N"]
    start: Float[Array, "N"]
    end: Float[Array, "N"]


def sequence_returns(problem: Problem, plans: Sequences, batch: int, *, key: Key) -> Float[Array, "N batch"]:
    """G of each plan, `batch` samples each; as many plans at a time as memory allows."""
    n, width = len(plans), width_of(problem, batch)
    if n <= width:
        return _returns(problem, plans, batch, key)
    padded = plans.at(jnp.minimum(jnp.arange(n + -n % width), n - 1))
    parts = jax.tree.map(lambda leaf: leaf.reshape(-1, width, *leaf.shape[1:]), padded)
    return jax.lax.map(lambda part: _returns(problem, part, batch, key), parts).reshape(-1, batch)[:n]


def width_of(problem: Problem, batch: int) -> int:
    """How many plans are sampled at a time: each may hold weights of its own."""
    sampler = problem.sampler
    weights = 0
    if isinstance(sampler, ModelSampler):
        leaves = jax.tree.leaves(eqx.filter(sampler.models[0], eqx.is_array))
        weights = sum(leaf[0].size for leaf in leaves)
    return max(1, LARGEST // (4 * batch * LARGEST // largest_call(sampler) + 2 * weights))


def _returns(problem: Problem, plans: Sequences, batch: int, key: Key) -> Float[Array, "N batch"]:
    sampler, reward, state, n = problem.sampler, problem.reward, problem.state, len(plans)
    alphas = jnp.concatenate([plans.alphas, jnp.zeros((n, 1))], axis=1)
    w = weights_of(alphas, sampler.gamma, reward.form)
    now = jnp.broadcast_to(reward.now(state[None])[:, None], (n, batch))
    begun = _Reached(jnp.broadcast_to(state, (n, batch, *state.shape)), now, jnp.zeros((n, batch)))
    along = jnp.arange(plans.depth), jnp.moveaxis(plans.policies, 1, 0), sampler.gamma * (1 - alphas.T)
    segments = _Segments(*along, w.start.T, w.end.T)

    def advance(reached: _Reached, here: _Segments) -> tuple[_Reached, None]:
        return _advanced(problem, plans.first, reached, here, jax.random.fold_in(key, here.m)), None

    reached, _ = jax.lax.scan(advance, begun, segments)
    ended = reward.has_ended(state[None])
    return reached.total if ended is None else jnp.where(ended, 0.0, reached.total)


def _advanced(
    problem: Problem, first: Array | None, reached: _Reached, here: _Segments, key: Key
) -> _Reached:
    """The next segment of all plans."""
    reward = problem.reward
    end, before, after = _drawn(problem, first, reached.x, here, key)
    policy = here.policy if here.policy.ndim == 1 else jnp.zeros(len(end), jnp.int32)
    ends = reward(policy, end[:, None], None if after is None else after[:, None])[:, 0]
    starts = reached.r
    if reward.depends_on_policy:
        starts = reward(policy, reached.x[:, None], None if before is None else before[:, None])[:, 0]
        if reward.form == "policy" and before is not None:
            own = reward(policy, reached.x[:, None], None)[:, 0]
            starts = jnp.where(here.m == 0, starts, own)
    total = reached.total + here.start[:, None] * starts + here.end[:, None] * ends
    return _Reached(end, ends, total)


class _Drawn(NamedTuple):
    """States at the ends of segments, and the actions at both ends where they are needed."""

    end: Array
    first: Array | None = None
    last: Array | None = None


def _drawn(problem: Problem, first: Array | None, x: Array, here: _Segments, key: Key) -> _Drawn:
    sampler, form = problem.sampler, problem.reward.form
    keys = jax.random.split(key, 3)

    def draw(policy: Array, beta: Array, x: Array, given: Array | None) -> _Drawn:
        move = move_of(sampler, choices_of(problem), policy, beta)
        if form != "state_action" and given is None:
            return _Drawn(stay(sampler.terminal, x[None], move.onward(x, key=keys[1])[None])[0])
        action = move.act(x, key=keys[0])
        if given is not None:
            action = jnp.where(here.m == 0, jnp.broadcast_to(given, action.shape), action)
        end = stay(sampler.terminal, x[None], move.jump(x, action, key=keys[1])[None])[0]
        return _Drawn(end, action, move.act(end, key=keys[2]) if form == "state_action" else None)

    return jax.vmap(draw)(here.policy, here.beta, x, first)


def choices_of(problem: Problem) -> Choices:
    """What the plans of a problem are made of."""
    if problem.choices is None:
        raise ValueError("a planner by shooting needs a problem that says what plans are made of")
    return problem.choices
