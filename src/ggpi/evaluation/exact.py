"""Exact Q of switching policies from the models of their base policies, with no new learning.

For ν = π₁ →(α₁) … πₙ the state after a Geometric(1−γ) time falls into segment m with probability
wₘ, and is then distributed as X^(m), the end of m segments of horizons β₁ … βₘ (γ for the last):

    Q^ν = r(x, a) + γ/(1−γ) E[ Σ_{m<n} wₘ ((1−αₘ) r^{πₘ} + αₘ r^{πₘ₊₁})(X^(m)) + wₙ r^{πₙ}(X′) ]

Exact: from the tail. g^ν(x, a) is the expectation above; with w = (1−γ)/(1−β₁) and ν′ the suffix,
    g^ν = E_{X∼μ^{π₁}_{β₁}}[ w ((1−α₁) r^{π₁} + α₁ r^{π₂}) + (1−w) Σ_a π₂(a|·) g^{ν′}(·, a) ],
so each GSP costs one application of its head's model, and suffixes are shared over the set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ggpi.evaluation.values import QValues
from ggpi.ghm.base import GHMs
from ggpi.mdp.tabular import check_range
from ggpi.mdp.ties import RESOLUTION, Accuracy
from ggpi.rewards import Reward
from ggpi.switching import GSP, GSPs, gsp_set, suffix_closure


def evaluate(gsps: GSPs | Iterable[GSP], ghms: GHMs, reward: Reward | ArrayLike) -> QValues:
    """Q^ν of every GSP in the set, exactly.

    Paper: Thm 3.2, Thm F.1
    """
    gsps = gsp_set(gsps)
    ghms.check(gsps)
    checked = ghms.mdp.checked_reward(reward)
    r = check_range(ghms.mdp.r(checked), ghms.gamma)
    closed = suffix_closure(gsps)
    g = _future_rewards(closed, ghms, r)
    scale = ghms.gamma / (1 - ghms.gamma)
    q = np.stack([r + scale * g[gsp] for gsp in gsps])
    return QValues(q, gsps, ghms.policies).with_accuracy(_accuracy(closed, gsps, ghms, checked))


def _accuracy(closed: GSPs, gsps: GSPs, ghms: GHMs, reward: Reward) -> Accuracy:
    """How far the values can be told apart: an error of each segment's solver adds to those of its suffix."""
    of_first = {(gsp.head, gsp.alphas[0] if gsp.alphas else None) for gsp in closed}
    largest = np.abs(reward.table).max()
    worst = max(ghms.segment(*first).error(largest) for first in of_first)
    error = ghms.gamma / (1 - ghms.gamma) * closed.depth * worst
    one_sign = (reward.table >= 0).all() or (reward.table <= 0).all()
    absolute = Reward(reward.form, np.abs(reward.table))
    return Accuracy(RESOLUTION, error, None if one_sign else lambda: evaluate(gsps, ghms, absolute).array)


def _future_rewards(gsps: GSPs, ghms: GHMs, r: np.ndarray) -> dict[GSP, np.ndarray]:
    """g^ν(x, a) = E^ν[r(X_T, A_T)] at T ∼ Geometric(1−γ), shortest GSPs first."""
    mdp = ghms.mdp
    pis = [np.asarray(policy) for policy in ghms.policies]
    r_pis = [(pi * r).sum(axis=1) for pi in pis]
    g: dict[GSP, np.ndarray] = {}
    for length in range(1, gsps.depth + 1):
        members, solved = [], []
        for (head, alpha), group in _by_first_segment(gsps, length).items():
            columns = [_segment_target(gsp, g, pis, r_pis, ghms) for gsp in group]
            solved.append(ghms.segment(head, alpha).visits(np.stack(columns, axis=1)))
            members += group
        expected = np.moveaxis(mdp.ahead(np.concatenate(solved, axis=1)), 2, 0)
        g |= dict(zip(members, np.ascontiguousarray(expected), strict=True))
    return g


def _by_first_segment(gsps: GSPs, length: int) -> dict[tuple[int, float | None], list[GSP]]:
    """GSPs of one length that share their head and first α, and so the model of their first segment."""
    groups = defaultdict(list)
    for gsp in gsps:
        if len(gsp) == length:
            groups[gsp.head, gsp.alphas[0] if gsp.alphas else None].append(gsp)
    return groups


def _segment_target(gsp: GSP, g: dict, pis: list, r_pis: list, ghms: GHMs) -> np.ndarray:
    """The value of the first segment's end: f(X^(1)) in the recursion of the module's docstring."""
    if len(gsp) == 1:
        return r_pis[gsp.head]
    alpha, following = gsp.alphas[0], gsp.policies[1]
    w = (1 - ghms.gamma) / (1 - ghms.horizon(alpha))
    here = (1 - alpha) * r_pis[gsp.head] + alpha * r_pis[following]
    return w * here + (1 - w) * (pis[following] * g[gsp.suffix]).sum(axis=1)
