"""Maximum a posteriori policy optimisation (Abdolmaleki et al., 2018), with decoupled constraints.

From actions aⱼ of the target policy π̄ and their values, the E-step weighs them and learns its temperature η:

    wⱼ ∝ exp(Q(x, aⱼ)/η),    L_η = η ε + η E_x[log (1/M) Σⱼ exp(Q(x, aⱼ)/η)].

The M-step fits the policy to the weights, its mean m with the old deviation s̄ and its deviation s with the
old mean m̄, each within its own trust region, coordinate by coordinate, with learned multipliers α:

    L_π = − E[Σⱼ wⱼ (log N(aⱼ; m, s̄) + log N(aⱼ; m̄, s))] + Σ αᵐ KLᵐ + αˢ KLˢ,    L_α = Σ α (ε − KL).

The critic learns from one-step targets r + γ E_{a′∼π̄}[Q̄(x′, a′)], which are right for whatever policy
acted, so all four directions learn from all steps in the replay buffer: a step's direction is drawn anew
and its reward with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.nn import softplus
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from ggpi._jax.jit import jit
from ggpi.envs.ant.symmetry import canonical, forth
from ggpi.lab.cells import Metrics
from ggpi.lab.pretraining.acting import act, clipped
from ggpi.lab.pretraining.replay import Replay
from ggpi.lab.pretraining.walking import Walk, Walkers, rewards, stack, summary
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP, seen
from ggpi.types import Key


@dataclass(frozen=True)
class MPO:
    """How to learn from the replay buffer; defaults are the paper's where it says them."""

    policy_widths: tuple[int, ...] = (256, 256, 256, 256)
    """Hidden layers of the policy."""
    critic_widths: tuple[int, ...] = (256, 256, 256, 256, 256)
    """Hidden layers of the critic."""
    horizon: int = 20
    """Steps of every ant between rounds of updates."""
    updates: int = 64
    """Updates in a round."""
    batch: int = 256
    """Pieces of trajectories in an update."""
    length: int = 20
    """Steps in a piece."""
    capacity: int = 1_000_000
    """Steps in the replay buffer."""
    num_actions: int = 20
    """Actions M that the E-step samples in a state."""
    gamma: float = 0.95
    """Discount of the walking reward."""
    learning_rate: float = 3e-4
    """Adam's step for the networks."""
    dual_rate: float = 1e-2
    """Adam's step for temperature and multipliers."""
    epsilon: float = 0.1
    """Trust region ε of the E-step."""
    epsilon_mean: float = 0.0025
    """Trust region of the mean, in each coordinate."""
    epsilon_std: float = 1e-6
    """Trust region of the deviation, in each coordinate."""
    target_period: int = 100
    """Updates between copies of the networks to their targets."""
    reward_scale: float = 0.1
    """Factor on rewards, so that values are of order one."""


class Duals(NamedTuple):
    """Temperature and multipliers before softplus, which keeps them positive."""

    temperature: Float[Array, ""]
    mean: Float[Array, "A"]
    std: Float[Array, "A"]


class Networks(NamedTuple):
    """What has a target copy."""

    policy: GaussianPolicy
    critic: LayerNormMLP


class Learner(eqx.Module):
    """Everything that learning changes, but for the replay buffer."""

    online: Networks
    target: Networks
    duals: Duals
    optimiser: Any
    dual_optimiser: Any
    count: Any

    @property
    def policy(self) -> GaussianPolicy:
        return self.online.policy


def e_step(
    q: Float[Array, "M B"], temperature: Float[Array, ""], epsilon: float
) -> tuple[Float[Array, "M B"], Float[Array, ""]]:
    """Weights of the sampled actions, and the temperature's loss."""
    scaled = jax.lax.stop_gradient(q) / temperature
    weights = jax.lax.stop_gradient(jax.nn.softmax(scaled, axis=0))
    log_mean = jax.nn.logsumexp(scaled, axis=0) - jnp.log(q.shape[0])
    return weights, temperature * (epsilon + log_mean.mean())


def mpo_loss(
    config: MPO,
    online: tuple[Float[Array, "B A"], Float[Array, "B A"]],
    target: tuple[Float[Array, "B A"], Float[Array, "B A"]],
    duals: Duals,
    actions: Float[Array, "M B A"],
    q: Float[Array, "M B"],
) -> tuple[Float[Array, ""], Metrics]:
    """The sum of all losses of policy, temperature and multipliers; and the KL divergences.

    `online` and `target` are (mean, std); `actions` were drawn from the target policy.
    """
    (mean, std), (old_mean, old_std) = online, jax.lax.stop_gradient(target)
    weights, temperature_loss = e_step(q, softplus(duals.temperature), config.epsilon)
    log_prob = norm.logpdf(actions, mean, old_std) + norm.logpdf(actions, old_mean, std)
    fit = -(weights * log_prob.sum(axis=-1)).sum(axis=0).mean()
    kl_mean = gaussian_kl(old_mean, old_std, mean, old_std).mean(axis=0)
    kl_std = gaussian_kl(old_mean, old_std, old_mean, std).mean(axis=0)
    held = penalty(kl_mean, softplus(duals.mean), config.epsilon_mean)
    held += penalty(kl_std, softplus(duals.std), config.epsilon_std)
    return fit + held + temperature_loss, {"kl_mean": kl_mean.mean(), "kl_std": kl_std.mean()}


def penalty(kl: Float[Array, "A"], alpha: Float[Array, "A"], epsilon: float) -> Float[Array, ""]:
    """α KL for the policy, and α (ε − KL) for the multiplier, each blind to the other."""
    hold = jax.lax.stop_gradient
    return (hold(alpha) * kl + alpha * (epsilon - hold(kl))).sum()


def gaussian_kl(m: Array, s: Array, n: Array, t: Array) -> Array:
    """KL(N(m, s²) ‖ N(n, t²)) in each coordinate."""
    return jnp.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 0.5


def new_learner(config: MPO, policy: GaussianPolicy, *, key: Key) -> Learner:
    """A fresh critic, targets and multipliers for a policy."""
    num_actions = policy.network.biases[-1].shape[0] // 2
    critic = LayerNormMLP((len(policy.inputs) + num_actions, *config.critic_widths, 1), last=0.1, key=key)
    online = Networks(policy, critic)
    ones = jnp.ones(num_actions)
    duals = Duals(jnp.ones(()), ones, 10.0 * ones)
    optimiser = optax.adam(config.learning_rate).init(eqx.filter(online, eqx.is_array))
    duals_optimiser = optax.adam(config.dual_rate).init(duals)
    return Learner(online, online, duals, optimiser, duals_optimiser, jnp.zeros((), jnp.int32))


def round_of(
    config: MPO, walk: Walk, learner: Learner, walkers: Walkers, replay: Replay, *, key: Key
) -> tuple[Learner, Metrics]:
    """Lets the ants walk for `horizon` steps, then learns from the replay buffer; returns what happened."""
    *keys, draw, last = jax.random.split(key, config.horizon + 2)
    walked = []
    for now in keys:
        _, _, executed, _ = act(learner.policy, walkers.states, walkers.direction.astype(np.int32), key=now)
        walked.append(walkers.step(np.asarray(executed)))
    steps = stack(walked)
    replay.add(steps)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(draw)))
    batches = relabel(walk, replay.sample(config.updates, config.batch, config.length, rng), rng)
    learner, numbers = updates(config, learner, batches, key=last)
    return learner, {**{name: float(n) for name, n in numbers.items()}, **summary(steps)}


def relabel(walk: Walk, batches: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The same steps with new directions, and the rewards for these."""
    direction = rng.integers(4, size=batches["direction"].shape)
    state, action, following, fell = (batches[name] for name in ("state", "action", "next_state", "fell"))
    reward = rewards(walk, state, action, following, direction, fell)
    return {**batches, "direction": direction.astype(np.int32), "reward": reward}


@jit
def updates(config: MPO, learner: Learner, batches: Metrics, *, key: Key) -> tuple[Learner, dict]:
    """As many updates as there are batches, in one compiled loop."""
    arrays, static = eqx.partition(learner, eqx.is_array)

    def one(arrays, now):
        learner, numbers = update(config, eqx.combine(arrays, static), now[0], key=now[1])
        return eqx.filter(learner, eqx.is_array), numbers

    keys = jax.random.split(key, batches["reward"].shape[0])
    arrays, numbers = jax.lax.scan(one, arrays, (batches, keys))
    return eqx.combine(arrays, static), jax.tree.map(jnp.mean, numbers)


def update(config: MPO, learner: Learner, batch: Metrics, *, key: Key) -> tuple[Learner, dict]:
    """One step of critic, policy, temperature and multipliers."""
    data = _prepare(config, learner, batch, key)
    params: Any
    params, static = eqx.partition((learner.online, learner.duals), eqx.is_array)
    gradient, numbers = jax.grad(_losses, has_aux=True)(params, static, config, data)
    parts: Any = type(learner.online)(*(clipped(part, 40.0) for part in gradient[0]))
    change, optimiser = optax.adam(config.learning_rate).update(parts, learner.optimiser)
    dual_change, dual_optimiser = optax.adam(config.dual_rate).update(gradient[1], learner.dual_optimiser)
    changed: Any = optax.apply_updates(params, (change, dual_change))
    online, duals = changed
    count = learner.count + 1
    fresh = count % config.target_period == 0
    old = eqx.filter(learner.target, eqx.is_array)
    target = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), online, old)
    online, target = (eqx.combine(arrays, static[0]) for arrays in (online, target))
    return Learner(online, target, duals, optimiser, dual_optimiser, count), numbers


def _prepare(config: MPO, learner: Learner, batch: Metrics, key: Key) -> Metrics:
    """Canonical states and actions, sampled actions with their values, and the critic's targets."""
    state, legs = jax.vmap(canonical)(batch["state"], batch["direction"])
    following, _ = jax.vmap(canonical)(batch["next_state"], batch["direction"])
    here, there = jax.random.split(key)
    actions, q, old = _sampled(config, learner.target, state, here)
    _, next_q, _ = _sampled(config, learner.target, following, there)
    after = jnp.where(batch["fell"], 0.0, next_q.mean(axis=0))
    return {
        "state": state,
        "action": jax.vmap(forth)(batch["action"], legs),
        "actions": actions,
        "q": q,
        "old": old,
        "target": config.reward_scale * batch["reward"] + config.gamma * after,
    }


def _sampled(config: MPO, networks: Networks, state: Array, key: Key) -> tuple[Array, Array, Any]:
    """M actions in each state, their values, and the mean and deviation that they came from."""
    mean, std = jax.vmap(networks.policy.distribution)(state)
    actions = mean + std * jax.random.normal(key, (config.num_actions, *mean.shape))
    q = jax.vmap(lambda a: _q(networks, state, a))(actions)
    return actions, q, (mean, std)


def _q(networks: Networks, state: Array, action: Array) -> Array:
    """Q(x, a) of canonical states [B, 35] and actions [B, A], which are clipped as when executed."""
    policy, critic = networks
    looked = jax.vmap(lambda x: seen(x, policy.inputs, policy.scale))(state)
    return jax.vmap(critic)(jnp.concatenate([looked, jnp.clip(action, policy.low, policy.high)], axis=1))[
        :, 0
    ]


def _losses(params: Any, static: Any, config: MPO, data: Metrics) -> tuple[Array, Metrics]:
    online, duals = eqx.combine(params, static)
    error = _q(online, data["state"], data["action"]) - data["target"]
    dist = jax.vmap(online.policy.distribution)(data["state"])
    loss, numbers = mpo_loss(config, dist, data["old"], duals, data["actions"], data["q"])
    numbers |= {
        "critic_loss": (error**2).mean(),
        "temperature": softplus(duals.temperature),
        "std": dist[1].mean(),
        "q": data["q"].mean(),
    }
    return loss + 0.5 * (error**2).mean(), numbers
