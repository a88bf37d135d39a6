"""Monte Carlo estimates of Q from samples of geometric horizon models, with standard errors.

Every estimator here draws chains of segments and averages what is paid along them (see `segments`); a reward ρ on
arrival pays 1/(1−γ) · [Σ wₘ ρ̃(X^(m)) + wₙ ρ̃(X′)] with ρ̃ = (1−γ)ρ at terminal states.
Eq 3 is the chain of one segment, Eq 4 repeats one policy, Eq 6 follows a switching policy.

A set is walked as a tree, depth first: paths with a common prefix share its samples, and each path
draws one continuation for every sample of its prefix, so samples within one path stay independent.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ggpi._jax.forking import check_process
from ggpi._jax.random import checked_key
from ggpi.evaluation.values import QValues
from ggpi.ghm.base import GHMs
from ggpi.rewards import Reward
from ggpi.switching import GSP, GSPs, Segment, gsp_set, segments
from ggpi.types import Key, indices, whole

CHUNK = 2**20
"""Chains that are drawn at a time."""


class Estimate(NamedTuple):
    """A sample mean and its standard error, for every state-action pair asked for.

    Paper: Eq 3
    """

    mean: np.ndarray
    stderr: np.ndarray


def evaluate_sampled(
    gsps: GSPs | Iterable[GSP], ghms: GHMs, reward: Reward | ArrayLike, *, num_samples: int, key: Key
) -> QValues:
    """Q^ν(x, a) of every GSP at every pair of a finite MDP, from `num_samples` chains each.

    Chains are shared along common prefixes; within one GSP they are independent.

    Paper: Thm 3.2, Thm F.1, Eq 6
    """
    gsps = gsp_set(gsps)
    ghms.check(gsps)
    mdp = ghms.mdp
    state, action = np.indices((mdp.num_states, mdp.num_actions))
    chains = _Chains([gsp.segments(ghms.gamma) for gsp in gsps], ghms, reward)
    estimate = chains.estimate(state, action, num_samples, key)
    return QValues(estimate.mean, gsps, ghms.policies, estimate.stderr)


def evaluate_gsp_sampled(
    gsp: GSP,
    ghms: GHMs,
    reward: Reward | ArrayLike,
    state: ArrayLike,
    action: ArrayLike,
    *,
    num_samples: int,
    key: Key,
) -> Estimate:
    """Q^ν at the given pairs.

    Paper: Eq 6
    """
    ghms.check(GSPs((gsp,)))
    estimate = _Chains([gsp.segments(ghms.gamma)], ghms, reward).estimate(state, action, num_samples, key)
    return Estimate(estimate.mean[0], estimate.stderr[0])


def evaluate_markov_sampled(
    policy: int,
    ghms: GHMs,
    reward: Reward | ArrayLike,
    state: ArrayLike,
    action: ArrayLike,
    *,
    num_segments: int = 1,
    num_samples: int,
    key: Key,
) -> Estimate:
    """Q^π by `num_segments` − 1 compositions of μ_β and one of μ_γ; one segment is Eq 3.

    Paper: Eq 2, Eq 3, Prop 2.5, Eq 4
    """
    num_segments = whole(num_segments, "num_segments")
    if num_segments > 1:
        _check_alphas(ghms, f"a chain of {num_segments} segments")
    ghms.check(GSPs((GSP((policy,)),)))
    path = segments([policy] * num_segments, ghms.alphas[:1] * (num_segments - 1), ghms.gamma)
    estimate = _Chains([path], ghms, reward).estimate(state, action, num_samples, key)
    return Estimate(estimate.mean[0], estimate.stderr[0])


def evaluate_janner_sampled(
    policy: int,
    ghms: GHMs,
    reward: Reward | ArrayLike,
    state: ArrayLike,
    action: ArrayLike,
    *,
    num_samples: int,
    key: Key,
) -> Estimate:
    """Q^π from μ_β alone: X at the end of N ∼ Geometric((1−γ)/(1−β)) compositions is a sample of μ_γ.

    Paper: Lem B.1
    """
    ghms.check(GSPs((GSP((policy,)),)))
    _check_alphas(ghms, "this estimate")
    alpha = ghms.alphas[0]
    chains = _RandomCompositions([segments([policy] * 2, [alpha], ghms.gamma)[:1]], ghms, reward)
    estimate = chains.estimate(state, action, num_samples, key)
    return Estimate(estimate.mean[0], estimate.stderr[0])


def _check_alphas(ghms: GHMs, what: str) -> None:
    if not ghms.alphas:
        raise ValueError(
            f"{what} needs models of a horizon β = γ(1−α) below γ; these have none, alphas is (). "
            "Make models with an alpha"
        )


def ghm_draws(gsps: GSPs | Iterable[GSP]) -> int:
    """Model samples that one chain of every GSP takes when common prefixes are shared."""
    gsps = gsp_set(gsps)
    prefixes = {(gsp.policies[:m], gsp.alphas[:m]) for gsp in gsps for m in range(1, len(gsp))}
    return len(gsps) + len(prefixes)


class _Start(NamedTuple):
    """Where the next segment starts: samples of states [pairs, n], and what led there."""

    x: Any
    action: Any
    """The action taken at x; None when the segment's policy chooses it."""
    total: Any
    """Σ of the weighted rewards of the segments before the last one."""
    last: Segment | None = None
    """The segment that ended at x: its reward there is still to be paid."""


class _Chains:
    """Chains of segments along a set of paths, and what they earn."""

    def __init__(self, paths: Sequence[tuple[Segment, ...]], ghms: GHMs, reward: Reward | ArrayLike):
        check_process()
        self.paths, self.ghms = paths, ghms
        self.mdp = ghms.mdp
        self.reward = self.mdp.checked_reward(reward)
        asked = {segment[:2] for path in paths for segment in path}
        self.models = {(policy, alpha): ghms.segment(policy, alpha).sampler for policy, alpha in asked}
        self.tables = self._reward_tables({policy for policy, _ in asked})

    def _reward_tables(self, policies: set[int]) -> dict[int, np.ndarray]:
        """r^π(x) of each policy; for a reward on arrival ρ̃(x), the same for all."""
        if self.reward.form == "arrival":
            paid_once: np.ndarray = self.reward.values * np.where(self.mdp.terminal, 1 - self.ghms.gamma, 1.0)
            return dict.fromkeys(policies, paid_once)
        r = self.mdp.r(self.reward)
        return {i: (np.asarray(self.ghms.policies[i]) * r).sum(axis=1) for i in policies}

    def estimate(self, state: ArrayLike, action: ArrayLike, num_samples: int, key: Any) -> Estimate:
        """Means and standard errors [paths, *pairs] of Q."""
        state, action = self._checked_pairs(state, action)
        key = checked_key(key)
        num_samples = whole(num_samples, "num_samples")
        num_parts = math.ceil(state.size * num_samples / CHUNK)
        size = math.ceil(state.size / num_parts)
        parts = []
        for first in range(0, state.size, size):
            places = np.minimum(first + np.arange(size), state.size - 1)  # equal shapes: one compilation
            x, a = state.ravel()[places], action.ravel()[places]
            parts.append(self._sample(x, a, num_samples, jax.random.fold_in(key, first)))
        mean, stderr = np.concatenate(parts, axis=2)[:, :, : state.size].astype(float)
        base, scale = self._affine(state.ravel(), action.ravel())
        shape = (len(self.paths), *state.shape)
        spread = np.abs(scale) * stderr if num_samples > 1 else stderr  # ∞ · 0 is no number
        return Estimate((base + scale * mean).reshape(shape), spread.reshape(shape))

    def _affine(self, state, action):
        """Q = base + scale · mean; nothing is earned from a terminal state on."""
        going = ~self.mdp.terminal[state]
        if self.reward.form == "arrival":
            return 0.0, going / (1 - self.ghms.gamma)
        return self.mdp.r(self.reward)[state, action], going * self.ghms.gamma / (1 - self.ghms.gamma)

    def _sample(self, state, action, num_samples, key) -> np.ndarray:
        """Mean and standard error over samples for every path, at pairs [n]: [2, paths, n]."""
        start = _Start(state[:, None], action[:, None], np.zeros((len(state), num_samples), np.float32))
        results: dict[int, tuple] = {}
        self._walk(range(len(self.paths)), 0, start, key, results)
        return np.stack([results[i] for i in range(len(self.paths))], axis=1)

    def _walk(self, paths: Iterable[int], m: int, start: _Start, key: Key, results: dict) -> None:
        """Draws segment m of the given paths, which agree up to there, and goes on to their ends."""
        groups = defaultdict(list)
        for i in paths:
            groups[self.paths[i][m]].append(i)
        for number, (segment, group) in enumerate(groups.items()):
            model, paid = self.models[segment[:2]], self._paid(start.last, segment)
            if segment.alpha is None:
                final = (segment.end * self.tables[segment.policy]).astype(np.float32)
                results |= dict.fromkeys(group, _finish(model, *start[:3], paid, final, key, number))
            else:
                x, total, onward = _advance(model, *start[:3], paid, key, number)
                self._walk(group, m + 1, _Start(x, None, total, segment), onward, results)

    def _paid(self, last: Segment | None, segment: Segment) -> np.ndarray:
        """What is paid, state by state, where one segment ends and the next one starts."""
        ended = last.end * self.tables[last.policy] if last else 0.0
        return (ended + segment.start * self.tables[segment.policy]).astype(np.float32)

    def _checked_pairs(self, state, action):
        state = indices(state, self.mdp.num_states, "states").astype(np.int32)
        action = indices(action, self.mdp.num_actions, "actions").astype(np.int32)
        for what, values in (("states", state), ("actions", action)):
            if not values.size:
                raise ValueError(f"no {what} are given; at least one is needed")
        return np.broadcast_arrays(state, action)


class _RandomCompositions(_Chains):
    """A chain of a Geometric number of segments of μ_β, paid at its end alone."""

    def _walk(self, paths, m, start, key, results):
        ((policy, alpha, *_),) = self.paths[0]
        stopping = (1 - self.ghms.gamma) / (1 - self.ghms.horizon(alpha))
        model, table = self.models[policy, alpha], self.tables[policy].astype(np.float32)
        results[0] = _finish_composed(model, *start[:3], table, stopping, key)


@jax.jit
def _advance(model, x, action, total, paid, key, number):
    """The end of a segment from x, the sum of rewards with x paid, and a key to go on with."""
    here, onward = jax.random.split(jax.random.fold_in(key, number))
    return _draw(model, x, action, total.shape, here), total + paid[x], onward


@jax.jit
def _finish(model, x, action, total, paid, final, key, number):
    """Mean and standard error of the chains' rewards, after their last segment."""
    here = jax.random.fold_in(key, number)
    return _summary(total + paid[x] + final[_draw(model, x, action, total.shape, here)])


def _draw(model, x, action, shape, key):
    """The first action is given, or chosen by the segment's policy."""
    x = jnp.broadcast_to(x, shape)
    return model.sample_onward(x, key=key) if action is None else model.sample(x, action, key=key)


@jax.jit
def _finish_composed(model, x, action, total, table, stopping, key):
    count_key, first_key, chain_key = jax.random.split(key, 3)
    count = jax.random.geometric(count_key, stopping, total.shape)

    def segment(carry):
        i, x = carry
        onward = model.sample_onward(x, key=jax.random.fold_in(chain_key, i))
        return i + 1, jnp.where(i < count, onward, x)

    first = _draw(model, x, action, total.shape, first_key)
    _, x = jax.lax.while_loop(lambda carry: carry[0] < count.max(), segment, (1, first))
    return _summary(total + table[x])


def _summary(worth):
    """Mean over samples [pairs, n], and its standard error (∞ for a single sample)."""
    n = worth.shape[1]
    variance = worth.var(axis=1) * n / max(n - 1, 1)
    return worth.mean(axis=1), jnp.sqrt(variance / n) if n > 1 else jnp.full(worth.shape[0], jnp.inf)
