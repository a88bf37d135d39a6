"""Closed-loop values from samples of a finite MDP's models: one set of jumps from every pair serves all switches.

    leaving rewards   Q_k(x, a) = r(x, a) + mean_i [ γ(1−α)/(1−β) r^{π_k}(Xᵢ) + c V(Xᵢ) ]
    arrival rewards   Q_k(x, a) = mean_i [ ρ(Xᵢ)/(1−β) + c V(Xᵢ) ]        Xᵢ ∼ μ_β^k(·|x, a),  c = γα/(1−β)

with V = max_k Σ_a π_k Q_k: the exact solution of an MDP whose transitions are the sampled jumps. The maximum prefers
policies whose jumps were lucky, so that values are biased upwards by few samples. In a terminal state the arrival
term is ρ(X) and V is 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ggpi._jax.random import checked_key
from ggpi.evaluation.values import QValues
from ggpi.ghm.base import GHMs
from ggpi.mdp.kernels import CSR
from ggpi.planning.closed_loop import closed_loop_alpha, labelled
from ggpi.rewards import Reward
from ggpi.types import Key, Scalar, StateValues, whole

PRECISION = 1e-7
"""Relative to the largest value; far below the noise of any number of samples."""


def evaluate_closed_loop_sampled(
    ghms: GHMs, reward: Reward | ArrayLike, *, alpha: Scalar | None = None, num_samples: int, key: Key
) -> QValues:
    """`evaluate_closed_loop` from `num_samples` jumps of each policy at each pair.

    Args:
        ghms: exact models.
        reward: a reward of their MDP.
        alpha: one of the models' α's; not needed if they have only one.
        num_samples: jumps for each (x, a, k).
        key: the random key.
    """
    alpha, mdp = closed_loop_alpha(ghms, alpha), ghms.mdp
    count, keys = whole(num_samples, "num_samples"), jax.random.split(checked_key(key), len(ghms.policies))
    jumps = [_jumps(ghms, k, alpha, count, keys[k]) for k in range(len(ghms.policies))]
    now, here = _rewards(ghms, mdp.checked_reward(reward), alpha)
    beta = ghms.horizon(alpha)
    c = ghms.gamma * alpha / (1 - beta)
    shape = (mdp.num_states, mdp.num_actions)
    pis = np.stack([np.asarray(policy, float) for policy in ghms.policies])
    fixed = np.stack([now + (jump @ f).reshape(shape) for jump, f in zip(jumps, here, strict=True)])
    fixed[:, mdp.terminal] = 0.0

    def backup(v: StateValues) -> np.ndarray:
        return fixed + np.stack([(jump @ (c * v)).reshape(shape) for jump in jumps])

    q, change = fixed, np.inf
    for _ in range(2 + int(np.log(PRECISION) / np.log(max(c, 0.5))) * 2):
        v = np.where(mdp.terminal, 0.0, np.einsum("kxa,kxa->kx", pis, q).max(axis=0))
        q, before = backup(v), q
        q[:, mdp.terminal] = 0.0
        change = np.abs(q - before).max()
        if change <= PRECISION * (1 - c) * np.abs(q).max():
            break
    return labelled(q, ghms)


def _jumps(ghms: GHMs, k: int, alpha: float, count: int, key: Key) -> CSR:
    """The sampled μ_β^k [S·A, S]: shares of `count` jumps from every pair."""
    shape = ghms.mdp.kernel.shape
    pairs = jnp.repeat(jnp.arange(shape[0], dtype=jnp.int32), count)
    state, action = jnp.divmod(pairs, ghms.mdp.num_actions)
    ends = ghms.sampler().jump((k,), ghms.horizon(alpha), state[None], action[None], key=key)[0]
    parts = np.full(len(pairs), 1 / count), (np.asarray(pairs), np.asarray(ends))
    return scipy.sparse.coo_array(parts, shape=shape).tocsr()


def _rewards(ghms: GHMs, reward: Reward, alpha: float) -> tuple[np.ndarray, list[StateValues]]:
    """What is known of a pair [S, A], and for each policy the reward of a jump's end [S], in units of Q."""
    mdp, beta = ghms.mdp, ghms.horizon(alpha)
    if reward.form == "arrival":
        once = np.where(mdp.terminal, 1.0, 1 / (1 - beta)) * reward.table
        return np.zeros((mdp.num_states, mdp.num_actions)), [once] * len(ghms.policies)
    r = mdp.r(reward)
    scale = ghms.gamma * (1 - alpha) / (1 - beta)
    return r, [scale * (np.asarray(policy) * r).sum(axis=1) for policy in ghms.policies]
