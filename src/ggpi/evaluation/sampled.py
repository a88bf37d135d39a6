"""Monte Carlo estimates of Q and V from samples of geometric horizon models, with standard errors.

One evaluator serves every Sampler (`ggpi.types.Sampler`): it draws chains of segments as a tree (`evaluation.tree`) and
averages their returns. At the pairs of a finite MDP the tree is walked segment by segment (`evaluation.walking`). Eq 3
is the chain of one segment, Eq 4 repeats one policy, Eq 6 follows a switching policy, and Janner's estimator is Eq 3
with a Sampler that composes μ_β to μ_γ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from ggpi._jax.forking import check_process
from ggpi._jax.random import checked_key
from ggpi.evaluation.queries import Estimate, Jump, estimate, largest_call, summary
from ggpi.evaluation.rewards import checked_reward, sampled_reward
from ggpi.evaluation.tree import tree_of
from ggpi.evaluation.values import QValues
from ggpi.evaluation.walking import Walk
from ggpi.ghm.base import GHMs
from ggpi.mdp.tabular import TabularMDP
from ggpi.rewards import Reward, as_reward
from ggpi.switching import GSP, GSPs, gsp_set, segments
from ggpi.types import Key, Numbers, Sampler, indices, whole


def evaluate_sampled(
    gsps: GSPs | Iterable[GSP],
    models: GHMs | Sampler,
    reward: Reward | ArrayLike,
    state: ArrayLike,
    action: ArrayLike | None = None,
    *,
    num_samples: int,
    key: Key,
) -> Estimate:
    """V^ν(x), or Q^ν(x, a), of every GSP in one state, from `num_samples` chains each.

    A pure function: it can be jitted, vmapped over states, actions, rewards and keys, and scanned. Chains are shared
    along common prefixes; within one GSP they are independent.

    Args:
        gsps: the switching policies; static.
        models: models of their policies, or any other Sampler of actions and future states.
        reward: a reward that JAX can trace.
        state: one state.
        action: the first action; each GSP's head chooses it by default.
        num_samples: the number of chains; static.
        key: the random key.

    Returns:
        Means and standard errors [N].

    Paper: Thm 3.2, Thm F.1
    """
    check_process()
    sampler = _sampler_of(models, gsp_set(gsps))
    first = None if action is None else jnp.asarray(action)[None, None]
    query = _query(gsp_set(gsps), sampler, as_reward(reward), jnp.asarray(state)[None], first)
    drawn = query.draw(whole(num_samples, "num_samples"), key=checked_key(key))
    return summary(query.returns(drawn)[:, 0, 0])


def evaluate_states_sampled(
    gsps: GSPs | Iterable[GSP],
    models: GHMs | Sampler,
    reward: Reward | ArrayLike,
    states: ArrayLike,
    actions: ArrayLike | None = None,
    *,
    num_samples: int,
    key: Key,
) -> Estimate:
    """The same in many states [B, …], in as many compiled calls as memory needs: [N, B], or [N, B, C] for actions.

    The Sampler and the reward may run on the host. `actions` [B, C, …] are first actions to score; of a batch of
    rewards (`ggpi.rewards.each`) every state has its own.
    """
    check_process()
    gsps, key, states = gsp_set(gsps), checked_key(key), jnp.asarray(states)
    sampler = _sampler_of(models, gsps)
    first = None if actions is None else jnp.asarray(actions)
    query = _query(gsps, sampler, _tried(as_reward(reward), sampler, states, key), states, first)
    found = estimate(query, whole(num_samples, "num_samples"), largest=largest_call(sampler), key=key)
    return found if actions is not None else Estimate(found.mean[..., 0], found.stderr[..., 0])


def _sampler_of(models: GHMs | Sampler, gsps: GSPs) -> Sampler:
    if not isinstance(models, GHMs):
        return models
    models = models.supporting(gsps.alphas)
    models.check(gsps)
    return models.sampler()


def _tried(reward: Reward, sampler: Sampler, states: Array, key: Key) -> Reward:
    """The reward, after a try on the shapes of a state and an action; one that JAX cannot trace runs on the host."""
    if not callable(reward.values):
        return reward
    action = (
        sampler.act((0,), states[None, :1], key=key)[0, 0] if reward.form == "state_action" else states[0]
    )
    of_state, of_action = (jax.ShapeDtypeStruct(np.shape(part), part.dtype) for part in (states[0], action))
    return checked_reward(reward, of_state, of_action)


def _query(gsps: GSPs, sampler: Sampler, reward: Reward, states: Numbers, actions: Numbers | None) -> Jump:
    """First actions [B, C, …] are the same for all heads."""
    scored = sampled_reward(reward, sampler)
    tree, _ = tree_of(gsps, sampler.gamma, scored.form)
    if actions is not None:
        actions = jnp.broadcast_to(actions, (gsps.num_policies, *actions.shape))
    return Jump(sampler, scored, states, actions, tree)


def evaluate_pairs_sampled(
    gsps: GSPs | Iterable[GSP], ghms: GHMs, reward: Reward | ArrayLike, *, num_samples: int, key: Key
) -> QValues:
    """Q^ν(x, a) of every GSP at every pair of a finite MDP, from `num_samples` chains each.

    Paper: Eq 6
    """
    gsps = gsp_set(gsps)
    ghms.check(gsps)
    state, action = np.indices((ghms.mdp.num_states, ghms.mdp.num_actions))
    chains = [gsp.segments(ghms.gamma) for gsp in gsps]
    found = _at_pairs(Walk(chains, ghms, reward), state, action, num_samples, key)
    return QValues(np.asarray(found.mean), gsps, ghms.policies, np.asarray(found.stderr))


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
    """Q^ν at pairs of a finite MDP.

    Paper: Eq 6
    """
    ghms.check(GSPs((gsp,)))
    return _one(Walk([gsp.segments(ghms.gamma)], ghms, reward), state, action, num_samples, key)


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
    """Q^π at pairs, by `num_segments` − 1 compositions of μ_β and one of μ_γ; one segment is Eq 3.

    Paper: Eq 2, Eq 3, Prop 2.5, Eq 4
    """
    num_segments = whole(num_segments, "num_segments")
    ghms.check(GSPs((GSP((policy,)),)))
    if num_segments > 1:
        _check_alphas(ghms, f"a chain of {num_segments} segments")
    chain = segments([policy] * num_segments, ghms.alphas[:1] * (num_segments - 1), ghms.gamma)
    return _one(Walk([chain], ghms, reward), state, action, num_samples, key)


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
    """Q^π at pairs from μ_β alone: X at the end of N ∼ Geometric((1−γ)/(1−β)) compositions is a sample of μ_γ.

    Paper: Lem B.1
    """
    ghms.check(GSPs((GSP((policy,)),)))
    _check_alphas(ghms, "this estimate")
    alpha = ghms.alphas[0]
    stopping = (1 - ghms.gamma) / (1 - ghms.horizon(alpha))
    short = dataclasses.replace(ghms, alphas=(), models=ghms.models[1:2])
    walk = Walk([segments([policy], [], ghms.gamma)], short, reward, stopping)
    return _one(walk, state, action, num_samples, key)


def _at_pairs(walk: Walk, state: ArrayLike, action: ArrayLike, num_samples: int, key: Any) -> Estimate:
    """Estimates [N, *pairs] at pairs of a finite MDP."""
    state, action = _checked_pairs(walk.ghms.mdp, state, action)
    num_samples, key = whole(num_samples, "num_samples"), checked_key(key)
    found = walk.estimate(state.ravel(), action.ravel(), num_samples, key=key)
    return Estimate(*(part.reshape(len(part), *state.shape) for part in found))


def _one(walk: Walk, state: ArrayLike, action: ArrayLike, num_samples: int, key: Any) -> Estimate:
    """The estimate of a set of one chain."""
    return Estimate(*(part[0] for part in _at_pairs(walk, state, action, num_samples, key)))


def _checked_pairs(mdp: TabularMDP, state: ArrayLike, action: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    state = indices(state, mdp.num_states, "states").astype(np.int32)
    action = indices(action, mdp.num_actions, "actions").astype(np.int32)
    for what, values in (("states", state), ("actions", action)):
        if not values.size:
            raise ValueError(f"no {what} are given; at least one is needed")
    state, action = np.broadcast_arrays(state, action)
    return state, action


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
