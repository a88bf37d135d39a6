"""True futures: the state X_T after the first action and then a policy, T ∼ Geometric(1−β), by simulation.

Anything with `step(states, actions, rng)` on arrays can be simulated: those of `ggpi.envs`, or a `TabularMDP`.
"""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.envs.environment import Dynamics
from ggpi.mdp.tabular import check_gamma
from ggpi.policies import PolicyBank
from ggpi.rollout.acting import act_at
from ggpi.types import Key, Policy, Scalar


def simulate_futures(
    dynamics: Dynamics,
    policy: Policy,
    states: ArrayLike,
    actions: ArrayLike,
    beta: Scalar,
    *,
    seed: int = 0,
) -> np.ndarray:
    """X_T ∼ μ^π_β(·|x, a) for each row of states and first actions; repeat a row to sample it often.

    Paper: Prop 2.3
    """
    beta = check_gamma(beta, "β")
    states, actions = np.asarray(states), np.asarray(actions)
    if len(states) != len(actions):
        raise ValueError(f"every state needs its first action, got {len(states)} and {len(actions)}")
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    times = rng.geometric(1 - beta, len(states))
    order = np.argsort(-times)
    x, a, left = states[order], actions[order], times[order]
    result, bank = np.array(x), PolicyBank([policy])
    for t in range(1, int(left.max(initial=0)) + 1):
        moving = np.count_nonzero(left >= t)
        result[:moving] = dynamics.step(result[:moving], a[:moving], rng)
        a = _act(bank, result, int((left > t).sum()), key, np.uint32(t))
    final = np.empty_like(result)
    final[order] = result
    return final


def _act(bank: PolicyBank, states: np.ndarray, count: int, key: Key, time: np.uint32) -> np.ndarray:
    """Actions for the first `count` states, and for some more, so that few shapes are compiled."""
    size = next((16**k for k in range(1, 8) if 16**k >= count), len(states))
    some = states[:size]
    some = some if some.dtype.kind in "iu" else some.astype(np.float32)
    return np.asarray(act_at(bank, np.int32(0), some, key, time))
