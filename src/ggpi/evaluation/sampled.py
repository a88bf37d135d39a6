"""Monte Carlo estimates of Q from samples of geometric horizon models, with standard errors.

Every estimator here draws chains of segments and averages

    r(x, a) + γ/(1−γ) · [ Σ_{m<n} wₘ ((1−αₘ) r^{πₘ} + αₘ r^{πₘ₊₁})(X^(m)) + wₙ r^{πₙ}(X′) ]

or, for a reward ρ on arrival, 1/(1−γ) · [Σ wₘ ρ̃(X^(m)) + wₙ ρ̃(X′)] with ρ̃ = (1−γ)ρ at terminal states.
Eq 3 is the chain of one segment, Eq 4 repeats one policy, Eq 6 follows a switching policy.

A set is walked as a tree, depth first: paths with a common prefix share its samples, and each path
draws one continuation for every sample of its prefix, so samples within one path stay independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ggpi.evaluation.values import QValues
from ggpi.ghm.base import GHMs
from ggpi.rewards import Reward
from ggpi.switching import GSP, GSPs, gsp_set
from ggpi.typing import Key

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
    mdp = ghms.segment(0, None).mdp
    state, action = np.indices((mdp.num_states, mdp.num_actions))
    estimate = _Chains([_path(gsp) for gsp in gsps], ghms, reward).estimate(state, action, num_samples, key)
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

    Paper: Thm 3.2, Thm F.1, Eq 6
    """
    ghms.check(GSPs((gsp,)))
    estimate = _Chains([_path(gsp)], ghms, reward).estimate(state, action, num_samples, key)
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
    if num_segments < 1:
        raise ValueError(f"a chain has at least one segment, got {num_segments}")
    ghms.check(GSPs((GSP((policy,)),)))
    path = [(policy, alpha) for alpha in ghms.alphas[:1] * (num_segments - 1)] + [(policy, None)]
    estimate = _Chains([tuple(path)], ghms, reward).estimate(state, action, num_samples, key)
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
    alpha = ghms.alphas[0]
    chains = _RandomCompositions([((policy, alpha),)], ghms, reward)
    estimate = chains.estimate(state, action, num_samples, key)
    return Estimate(estimate.mean[0], estimate.stderr[0])


def ghm_draws(gsps: GSPs | Iterable[GSP], shared: bool = True) -> int:
    """Model samples that one chain of every GSP takes, with or without shared prefixes.

    Paper: Alg 1, Fig 4
    """
    gsps = gsp_set(gsps)
    prefixes = {_path(gsp)[:m] for gsp in gsps for m in range(1, len(gsp))}
    return len(gsps) + len(prefixes) if shared else sum(map(len, gsps))


Path = tuple[tuple[int, float | None], ...]
"""(policy, α of the switch that ends its segment) for each segment; the last has no switch."""


def _path(gsp: GSP) -> Path:
    return tuple(zip(gsp.policies, (*gsp.alphas, None), strict=True))


class _Start(NamedTuple):
    """Where the next segment starts: samples of states [pairs, n], and what led there."""

    x: Any
    total: Any
    """Σ of the weighted rewards of the segments before the last one."""
    last: tuple[int, float] | None = None
    """The last segment's policy and α; its reward awaits the policy that goes on."""
    reach: float = 1.0
    """The probability that the geometric time is not over when that segment starts."""


class _Chains:
    """Chains of segments along a set of paths, and what they earn."""

    def __init__(self, paths: Sequence[Path], ghms: GHMs, reward: Reward | ArrayLike):
        self.paths, self.ghms = paths, ghms
        self.mdp = ghms.segment(0, None).mdp
        self.reward = self.mdp.checked_reward(reward)
        self.tables = [jnp.asarray(table, jnp.float32) for table in self._reward_tables()]

    def _reward_tables(self) -> list[np.ndarray]:
        """r^π(x) of each policy; for a reward on arrival ρ̃(x), the same for all."""
        if self.reward.form == "arrival":
            once = np.where(self.mdp.terminal, 1 - self.ghms.gamma, 1.0)
            return [self.reward.values * once] * len(self.ghms.policies)
        r = self.mdp.r(self.reward)
        return [(np.asarray(policy) * r).sum(axis=1) for policy in self.ghms.policies]

    def estimate(self, state: ArrayLike, action: ArrayLike, num_samples: int, key: Key) -> Estimate:
        """Means and standard errors [paths, *pairs] of Q."""
        state, action = self._checked_pairs(state, action, num_samples)
        size = max(1, min(state.size, CHUNK // num_samples))
        parts = []
        for start in range(0, state.size, size):
            places = np.minimum(
                np.arange(start, start + size), state.size - 1
            )  # equal shapes, one compilation
            x, a = state.ravel()[places], action.ravel()[places]
            parts.append(self._sample(x, a, num_samples, jax.random.fold_in(key, start)))
        mean, stderr = (
            np.concatenate([np.stack(part[kind]) for part in parts], axis=1)[:, : state.size].astype(float)
            for kind in (0, 1)
        )
        base, scale = self._affine(state.ravel(), action.ravel())
        shape = (len(self.paths), *state.shape)
        return Estimate((base + scale * mean).reshape(shape), (np.abs(scale) * stderr).reshape(shape))

    def _affine(self, state, action):
        """Q = base + scale · mean; nothing is earned from a terminal state on."""
        going = ~self.mdp.terminal[state]
        if self.reward.form == "arrival":
            return 0.0, going / (1 - self.ghms.gamma)
        return self.mdp.r(self.reward)[state, action], going * self.ghms.gamma / (1 - self.ghms.gamma)

    def _sample(self, state, action, num_samples, key) -> tuple[list, list]:
        """Mean and standard error over samples for every path, at pairs [n]."""
        x = jnp.broadcast_to(jnp.asarray(state)[:, None], (len(state), num_samples))
        a = jnp.broadcast_to(jnp.asarray(action)[:, None], x.shape)
        results: dict[int, tuple] = {}
        self._walk(range(len(self.paths)), 0, _Start(x, jnp.zeros(x.shape, jnp.float32)), a, key, results)
        ordered = [results[i] for i in range(len(self.paths))]
        return [mean for mean, _ in ordered], [stderr for _, stderr in ordered]

    def _walk(
        self, paths: Iterable[int], m: int, start: _Start, action: Any, key: Key, results: dict
    ) -> None:
        """Draws segment m of the given paths, which agree up to there, and goes on to their ends.

        Segment m < n is drawn from μ^{πₘ} at βₘ, the last from μ^{πₙ} at γ; its first action is chosen by πₘ.
        """
        groups = defaultdict(list)
        for i in paths:
            groups[self.paths[i][m]].append(i)
        for number, ((policy, alpha), group) in enumerate(groups.items()):
            here = jax.random.fold_in(key, number)
            total, reach = self._earned(start, policy)
            x = self._segment(policy, alpha, start.x, action, here)
            if alpha is None:
                results |= dict.fromkeys(group, _summary(total, x, self.tables[policy], reach))
            else:
                self._walk(group, m + 1, _Start(x, total, (policy, alpha), reach), None, here, results)

    def _earned(self, start: _Start, policy: int) -> tuple[Any, float]:
        """The sum with the last segment's end paid, now that `policy` goes on; and the new reach."""
        if start.last is None:
            return start.total, start.reach
        previous, alpha = start.last
        stopping = (1 - self.ghms.gamma) / (1 - self.ghms.horizon(alpha))
        weight = start.reach * stopping
        tables = self.tables[previous], self.tables[policy]
        total = _add(start.total, start.x, *tables, weight * (1 - alpha), weight * alpha)
        return total, start.reach * (1 - stopping)

    def _segment(self, policy, alpha, x, action, key):
        model = self.ghms.segment(policy, alpha).sampler
        return _draw(self.ghms.policies[policy].table, model, x, action, key)

    def _checked_pairs(self, state, action, num_samples):
        if num_samples < 1:
            raise ValueError(f"num_samples is at least 1, got {num_samples}")
        pairs = np.broadcast_arrays(np.asarray(state, np.int32), np.asarray(action, np.int32))
        limits = (self.mdp.num_states, self.mdp.num_actions)
        for what, values, limit in zip(("states", "actions"), pairs, limits, strict=True):
            if values.size and not (values.min() >= 0 and values.max() < limit):
                raise IndexError(f"{what} run from 0 to {limit - 1}, got {values.min()} to {values.max()}")
        return pairs


class _RandomCompositions(_Chains):
    """A chain of a Geometric number of segments of μ_β, paid at its end alone."""

    def _walk(self, paths, m, start, action, key, results):
        ((policy, alpha),) = self.paths[0]
        beta = self.ghms.horizon(alpha)
        stopping = (1 - self.ghms.gamma) / (1 - beta)
        model = self.ghms.segment(policy, alpha).sampler
        x = _compose_geometrically(self.ghms.policies[policy].table, model, start.x, action, stopping, key)
        results[0] = _summary(start.total, x, self.tables[policy], 1.0)


@eqx.filter_jit
def _draw(policy, model, x, action, key):
    """The end of one segment from x; the first action is given, or chosen by the segment's policy."""
    action_key, model_key = jax.random.split(key)
    if action is None:
        action = policy.sample(x, key=action_key)
    return model.sample(x, action, key=model_key)


@eqx.filter_jit
def _compose_geometrically(policy, model, x, action, stopping, key):
    count_key, chain_key = jax.random.split(key)
    count = jax.random.geometric(count_key, stopping, x.shape)

    def segment(carry):
        i, x, action = carry
        model_key, action_key = jax.random.split(jax.random.fold_in(chain_key, i))
        x = jnp.where(i < count, model.sample(x, action, key=model_key), x)
        return i + 1, x, policy.sample(x, key=action_key)

    return jax.lax.while_loop(lambda carry: carry[0] < count.max(), segment, (0, x, action))[1]


@jax.jit
def _add(total, x, table, next_table, weight, next_weight):
    return total + (weight * table + next_weight * next_table)[x]


@jax.jit
def _summary(total, x, table, weight):
    """Mean over samples of total + weight · r(x), and its standard error (∞ for a single sample)."""
    worth = total + weight * table[x]
    n = x.shape[1]
    variance = worth.var(axis=1) * n / max(n - 1, 1)
    return worth.mean(axis=1), jnp.sqrt(variance / n) if n > 1 else jnp.full(x.shape[0], jnp.inf)
