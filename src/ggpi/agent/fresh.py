"""Values of a jumpy graph, checked with fresh jumps before any episode.

The maximum over policies prefers those whose jumps were lucky, so that V of a graph is too large on average. Here every
landmark gets jumps that the graph has not seen: some choose a policy κ(x), as an agent does there, others estimate

    T_κ V(x) = E[reward of a jump of κ(x) + c V(X)]

without bias. Where V ≤ T_κ V + δ at all landmarks, V is larger than what switching by κ reaches by at most δ/(1−c).
Models and interpolation are the same: this check says nothing of their errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Int

from ggpi._jax.random import checked_key
from ggpi.agent.agent import GGPIAgent
from ggpi.types import Key, whole


@dataclass(frozen=True, eq=False)
class FreshValues:
    """V of some landmarks by the graph, and by fresh jumps."""

    landmarks: Int[np.ndarray, "n"]
    """Which ones."""
    graph: Float[np.ndarray, "n"]
    fresh: Float[np.ndarray, "n"]
    stderr: Float[np.ndarray, "n"]
    """Of the fresh values."""
    policy: Int[np.ndarray, "n"]
    """What an agent would choose."""
    discount: float
    """c, of a jump."""

    @property
    def excess(self) -> float:
        """How much larger the graph's values are, in the mean."""
        return float((self.graph - self.fresh).mean())

    @property
    def excess_stderr(self) -> float:
        """Its standard error over the fresh jumps."""
        return float(np.sqrt((self.stderr**2).sum()) / len(self.stderr))

    def __str__(self) -> str:
        scale = max(float(np.abs(self.graph).mean()), 1e-30)
        excess, error, most = (
            100 * part / scale
            for part in (self.excess, self.excess_stderr, self.excess / (1 - self.discount))
        )
        return (
            f"V of {len(self.graph)} landmarks is larger by {excess:.2g} ± {error:.2g}% of its mean in the graph than "
            f"by fresh jumps; over all jumps this adds up to about {most:.2g}%"
        )


def fresh_values(agent: GGPIAgent, num_landmarks: int = 200, *, key: Key) -> FreshValues:
    """V of some landmarks of the agent's graph, for its reward, checked with `num_samples` fresh jumps of each policy.

    Args:
        agent: an agent with depth="inf", for one reward.
        num_landmarks: how many are drawn, at most all.
        key: the random key.
    """
    if agent.graph is None:
        raise ValueError('fresh_values checks a graph: give an agent with depth="inf" and graph=')
    draw_key, choice_key, value_key = jax.random.split(checked_key(key), 3)
    graph, heads = agent.graph, replace(agent, first_actions="head")
    v = graph.solve(agent.reward)
    if v.ndim != 1:
        raise ValueError(f"fresh_values checks one reward at a time, the agent has {len(v)}")
    count = min(whole(num_landmarks, "num_landmarks"), len(v))
    rows = np.sort(np.asarray(jax.random.choice(draw_key, len(v), (count,), replace=False)))
    chosen = np.asarray(heads.plan(graph.landmarks[rows], key=choice_key).best)
    fresh = heads.plan(graph.landmarks[rows], key=value_key)
    value, stderr = (part[np.arange(count), chosen] for part in (fresh.value, fresh.stderr))
    return FreshValues(rows, v[rows], value, stderr, chosen, graph.discount)
