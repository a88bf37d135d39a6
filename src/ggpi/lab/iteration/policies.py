"""Policies as softmax networks over noisy observations of the coin corridor, for policy iteration with learned models.

All of them, the first ones too, have one structure: programs that are compiled for one serve for all.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ggpi import rewards
from ggpi._jax.jit import jit
from ggpi._jax.networks import MLP, mlp
from ggpi.data import Transitions
from ggpi.evaluation import evaluate_states_sampled
from ggpi.ghm import GHMs
from ggpi.improvement import policy_iteration
from ggpi.lab.iteration.coin_corridor import RIGHT, CoinCorridor
from ggpi.mdp.optimal import q_star
from ggpi.policies.action_heads import CategoricalPolicy
from ggpi.rewards import Reward
from ggpi.switching import GSPs
from ggpi.types import Key

STARTS = {"right": "first policy: always right", "uniform": "first policy: uniform"}
NUM_ACTIONS = 4
CERTAIN = 20.0
"""The logit of an action that is always taken."""


def first_policy(start: str) -> CategoricalPolicy:
    """A policy that is the same everywhere, as a network like all others."""
    network = jax.tree.map(jnp.zeros_like, _network(jax.random.key(0)))
    logits = CERTAIN * np.eye(NUM_ACTIONS)[RIGHT] if start == "right" else np.zeros(NUM_ACTIONS)
    biases = (*network.biases[:-1], jnp.asarray(logits, jnp.float32))
    return CategoricalPolicy(MLP(network.weights, biases), "π", NUM_ACTIONS)


def _network(key: Key) -> MLP:
    return mlp((2, 64, 64, NUM_ACTIONS), key=key)


def best_values(
    ghms: GHMs, gsps: GSPs, reward: Reward, states: np.ndarray, num_samples: int, *, key: Key
) -> np.ndarray:
    """max_ν Q^ν(x, a) over a set, [B, A]: `GGPIAgent.plan` without its samples."""
    actions = np.broadcast_to(np.arange(NUM_ACTIONS, dtype=np.int32), (len(states), NUM_ACTIONS))
    found = evaluate_states_sampled(gsps, ghms, reward, states, actions, num_samples=num_samples, key=key)
    return np.asarray(found.mean).max(axis=0)


@jit
def taught(network: Any, states: Any, best: Any, steps: int) -> Any:
    """A network that is taught, by cross-entropy, the best of its outputs [B] in states [B, D]."""
    optimiser = optax.adam(optax.linear_schedule(1e-2, 0.0, steps))

    def loss(network):
        return optax.softmax_cross_entropy_with_integer_labels(network(states), best).mean()

    def step(carry, _):
        network, state = carry
        updates, state = optimiser.update(jax.grad(loss)(network), state)
        return (optax.apply_updates(network, updates), state), None

    return jax.lax.scan(step, (network, optimiser.init(network)), length=steps)[0][0]


def fitted_policy(states: np.ndarray, q: np.ndarray, steps: int, *, key: Key) -> CategoricalPolicy:
    """A softmax network that is taught the greedy actions of q [B, A] by cross-entropy."""
    best = jnp.asarray(q.argmax(axis=1), jnp.int32)
    network = taught(_network(key), jnp.asarray(states, jnp.float32), best, steps)
    return CategoricalPolicy(network, "π", NUM_ACTIONS)


def episodes(
    world: CoinCorridor, policy: CategoricalPolicy, num_episodes: int, num_steps: int, *, seed: int
) -> Transitions:
    """Episodes from anywhere: a random action, then the policy's. So every action is seen in every state."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    states = [world.start(num_episodes, rng)]
    actions = [rng.integers(NUM_ACTIONS, size=num_episodes).astype(np.int32)]
    for t in range(num_steps):
        states.append(world.step(states[-1], actions[-1], rng))
        actions.append(np.asarray(policy.sample(states[-1], key=jax.random.fold_in(key, t))))
    x, a = np.stack(states, axis=1), np.stack(actions[:-1], axis=1).ravel()
    step = np.tile(np.arange(num_steps), num_episodes)
    return Transitions(
        x[:, :-1].reshape(-1, 2),
        a,
        x[:, 1:].reshape(-1, 2),
        terminated=np.zeros(len(a), bool),
        truncated=step == num_steps - 1,
        behaviour=np.zeros(len(a), int),
        episode=np.repeat(np.arange(num_episodes), num_steps),
        step=step,
    )


def score(world: CoinCorridor, policy: CategoricalPolicy, gamma: float, num_views: int = 64) -> float:
    """The mean of V^π over all cells as a share of V*'s, exact but for the mean over `num_views` views of each cell."""
    rng = np.random.default_rng(0)
    views = [world.observe(np.arange(world.mdp.num_states), rng) for _ in range(num_views)]
    pi = jax.nn.softmax(policy.function(jnp.asarray(np.stack(views)))).mean(axis=0)
    return share(world, np.asarray(pi, float), gamma)


def share(world: CoinCorridor, pi: Any, gamma: float) -> float:
    """The mean of V^π over all cells as a share of V*'s."""
    reward = rewards.arrival(world.arrival_rewards)
    best = q_star(world.mdp, reward, gamma).max(axis=1)
    return float(world.mdp.v(pi, reward, gamma).mean() / best.mean())


def exact_returns(
    start: str, length: int, gamma: float, alpha: float, depth: int | Literal["inf"], iterations: int
) -> list[float]:
    """The shares of π₀, π₁, … with exact models and tables, over switching policies that end in the newest.

    The closed loop, depth "inf", switches among all.
    """
    world = CoinCorridor(length)
    right = np.tile(np.eye(NUM_ACTIONS)[RIGHT], (world.mdp.num_states, 1))
    found = policy_iteration(
        world.mdp,
        rewards.arrival(world.arrival_rewards),
        gamma,
        alpha,
        depth=depth,
        newest_last=depth != "inf",
        start=right if start == "right" else None,
        max_iterations=iterations,
    )
    returns = [share(world, policy, gamma) for policy in found.policies]
    return returns + [returns[-1]] * (iterations + 1 - len(returns))
