"""KL-OLOP (Leurent and Maillard 2019): optimistic planning over sequences, for comparison.

One episode follows one plan and draws all its segments. The upper bound of a plan is Σ_j c_j U_j with U_j the KL upper
confidence bound of the mean reward after its first j segments, at the level f = 2 ln m + 2 ln ln m of m episodes. What
was not visited yet counts 1. After all episodes the plan that was followed most often is chosen.
"""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class _Node:
    """A prefix: its visits, the sum of its rewards, and the bound of the best completion from here on."""

    visits: int = 0
    total: float = 0.0
    bound: float = 0.0
    children: dict[int, "_Node"] = field(default_factory=dict)


def kl_upper_bound(mean: float, visits: int, level: float) -> float:
    """The largest q with visits · kl(mean, q) ≤ level, by bisection."""
    low, high, limit = mean, 1.0, level / visits
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if _kl(mean, middle) <= limit else (low, middle)
    return high


def _kl(p: float, q: float) -> float:
    q = min(max(q, 1e-12), 1 - 1e-12)
    left = p * np.log(p / q) if p > 0 else 0.0
    return left + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_olop(
    cumulative: list[np.ndarray],
    rewards: np.ndarray,
    weights: np.ndarray,
    start: int,
    budget: int,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    """The chosen plan, after `budget` draws.

    Args:
        cumulative: for each level the distribution of a segment's end [K, S, S], summed along the last axis.
        rewards: ρ [S] in [0, 1].
        weights: c_1 … c_M.
        start: the state.
        budget: draws, one for each segment of an episode.
        rng: the noise.
    """
    num_policies, depth = len(cumulative[0]), len(weights)
    episodes = max(budget // depth, 3)
    level = 2 * np.log(episodes) + 2 * np.log(np.log(episodes))
    rest = np.cumsum(weights[::-1])[::-1]
    root = _Node()
    for _ in range(episodes):
        node, path, x = root, [root], start
        for j in range(depth):
            bounds = [node.children[k].bound if k in node.children else rest[j] for k in range(num_policies)]
            best = np.flatnonzero(np.array(bounds) >= max(bounds) - 1e-12)
            k = int(rng.choice(best))
            node = node.children.setdefault(k, _Node())
            x = int(np.searchsorted(cumulative[j][k, x], rng.random(), side="right"))
            x = min(x, len(rewards) - 1)
            node.visits, node.total = node.visits + 1, node.total + float(rewards[x])
            path.append(node)
        for j in reversed(range(depth)):
            node = path[j + 1]
            own = weights[j] * kl_upper_bound(node.total / node.visits, node.visits, level)
            node.bound = own + _best_child(node, rest[j + 1] if j + 1 < depth else 0.0, num_policies)
    return _most_followed(root, depth)


def _best_child(node: _Node, unknown: float, num_policies: int) -> float:
    known = [child.bound for child in node.children.values()]
    return max([*known, unknown] if len(known) < num_policies else known)


def _most_followed(root: _Node, depth: int) -> tuple[int, ...]:
    node, chosen = root, []
    for _ in range(depth):
        k, node = max(node.children.items(), key=lambda pair: pair[1].visits)
        chosen.append(k)
    return tuple(chosen)
