"""Proximal policy optimisation (Schulman et al., 2017), on the ants' canonical states.

All ants walk for some steps, then the network is updated on what they met:

    L = − E[min(ρ Â, clip(ρ, 1 ± ε) Â)] + E[(V − V̂)²] − c H,    ρ = π(a|x)/π_old(a|x),

with generalised advantages Â. A trajectory is cut where the direction changes; there, as at the end of an
episode, the value of the *old* direction is bootstrapped, and only after a fall the value is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.scipy.stats import norm
from jaxtyping import Float, PyTree

from ggpi._jax.jit import jit
from ggpi.envs.ant.symmetry import canonical
from ggpi.lab.cells import Metrics
from ggpi.lab.pretraining.acting import act, clipped
from ggpi.lab.pretraining.walking import Walkers, as_dict, stack, summary
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP, seen
from ggpi.types import Key


@dataclass(frozen=True)
class PPO:
    """How to learn from each round of steps."""

    policy_widths: tuple[int, ...] = (128, 128)
    """Hidden layers of the policy."""
    value_widths: tuple[int, ...] = (128, 128)
    """Hidden layers of the value function."""
    horizon: int = 20
    """Steps of every ant between updates."""
    gamma: float = 0.95
    """Discount of the walking reward."""
    lam: float = 0.95
    """λ of the generalised advantages."""
    epochs: int = 4
    """Passes over a round of steps."""
    minibatches: int = 5
    """Parts of a round that are updated on in turn."""
    clip: float = 0.2
    """ε of the clipped ratio."""
    entropy: float = 0.003
    """Weight c of the entropy, which keeps the policy curious."""
    curious_rounds: int = 325
    """Rounds until the policy settles: then c is 0, and the learning rate may become small."""
    learning_rate: float = 1e-3
    """Adam's step at the start; it is then adapted to the KL divergence, between `min_rate` and 10⁻³."""
    min_rate: float = 2e-4
    """The smallest learning rate while curious; a tenth of it afterwards."""
    kl_target: float = 0.01
    """Wanted KL divergence between the policies before and after an update."""
    reward_scale: float = 0.1
    """Factor on rewards, so that values are of order one."""

    def settled(self) -> PPO:
        """The same without curiosity."""
        return replace(self, entropy=0.0, min_rate=self.min_rate / 10)


class Learner(eqx.Module):
    """Everything that learning changes."""

    policy: GaussianPolicy
    value: LayerNormMLP
    optimiser: Any
    learning_rate: jax.Array


def new_learner(config: PPO, policy: GaussianPolicy, *, key: Key) -> Learner:
    """A fresh value function and optimiser for a policy."""
    value = LayerNormMLP((len(policy.inputs), *config.value_widths, 1), key=key)
    optimiser = optax.adam(0.0).init(eqx.filter((policy, value), eqx.is_array))
    return Learner(policy, value, optimiser, jnp.full((), config.learning_rate))


def round_of(config: PPO, learner: Learner, walkers: Walkers, *, key: Key) -> tuple[Learner, Metrics]:
    """Lets the ants walk for `horizon` steps, then learns from them; returns what happened in numbers."""
    *keys, last = jax.random.split(key, config.horizon + 1)
    walked = []
    for now in keys:
        turned, action, executed, log_prob = act(
            learner.policy, walkers.states, walkers.direction.astype(np.int32), key=now
        )
        step = walkers.step(np.asarray(executed))
        walked.append((turned, action, log_prob, step))
    turned, action, log_prob = (jnp.stack(column) for column in list(zip(*walked, strict=True))[:3])
    steps = stack([step for *_, step in walked])
    learner, numbers = update(
        config, learner, turned, action, log_prob, jax.tree.map(jnp.asarray, as_dict(steps)), key=last
    )
    return learner, {**{name: float(n) for name, n in numbers.items()}, **summary(steps)}


@jit
def update(
    config: PPO,
    learner: Learner,
    turned: Float[Array, "T N D"],
    action: Float[Array, "T N A"],
    log_prob: Float[Array, "T N"],
    steps: dict[str, Array],
    *,
    key: Key,
) -> tuple[Learner, dict[str, Array]]:
    """Several epochs of clipped policy gradients on one round of steps."""
    value = jax.vmap(jax.vmap(partial(value_of, learner)))
    following, _ = jax.vmap(jax.vmap(canonical))(steps["next_state"], steps["direction"].astype(jnp.int32))
    before = value(turned)
    advantage = advantages(config, before, value(following), steps)
    data = (turned, action, log_prob, advantage, before + advantage)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), data)
    size = flat[2].shape[0]

    params: Any
    params, static = eqx.partition((learner.policy, learner.value), eqx.is_array)
    transform = optax.adam(learner.learning_rate)

    def one(carry: PyTree, rows: Array) -> tuple[PyTree, Array]:
        params, state = carry
        batch = jax.tree.map(lambda x: x[rows], flat)
        (_, kl), gradient = jax.value_and_grad(loss, has_aux=True)(params, static, config, *batch)
        gradient = tuple(clipped(part, 1.0) for part in gradient)  # neither network drowns the other
        changes, state = transform.update(gradient, state, params)
        return (optax.apply_updates(params, changes), state), kl

    orders = [jax.random.permutation(k, size) for k in jax.random.split(key, config.epochs)]
    rows = jnp.concatenate(orders).reshape(config.epochs * config.minibatches, -1)
    (params, state), kl = jax.lax.scan(one, (params, learner.optimiser), rows)
    policy, critic = eqx.combine(params, static)
    kl = kl[-config.minibatches :].mean()
    rate = jnp.where(kl > 2 * config.kl_target, learner.learning_rate / 1.5, learner.learning_rate)
    rate = jnp.clip(jnp.where(kl < config.kl_target / 2, rate * 1.5, rate), config.min_rate, 1e-3)
    _, std = jax.vmap(policy.distribution)(flat[0][:512])
    return Learner(policy, critic, state, rate), {"kl": kl, "learning_rate": rate, "std": std.mean()}


def value_of(learner: Learner, turned: Array) -> Array:
    """V of a canonical state."""
    return learner.value(seen(turned, learner.policy.inputs, learner.policy.scale))[0]


def advantages(
    config: PPO, before: Float[Array, "T N"], after: Float[Array, "T N"], steps: dict[str, Array]
) -> Float[Array, "T N"]:
    """Generalised advantages Âₜ = δₜ + γλ Âₜ₊₁, δₜ = r + γ V(x′) − V(x).

    There is no V after a fall and no Âₜ₊₁ after a cut.
    """
    delta = (
        config.reward_scale * steps["reward"] + config.gamma * jnp.where(steps["fell"], 0.0, after) - before
    )
    keep = config.gamma * config.lam * ~steps["cut"]

    def backwards(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, keep = now
        return (later := delta + keep * later), later

    return jax.lax.scan(backwards, jnp.zeros(before.shape[1]), (delta, keep), reverse=True)[1]


def loss(
    params: PyTree,
    static: PyTree,
    config: PPO,
    turned: Array,
    action: Array,
    log_prob: Array,
    advantage: Array,
    target: Array,
) -> tuple[Array, Array]:
    """The clipped objective, the squared error of V, and the entropy; also the KL divergence so far."""
    policy, critic = eqx.combine(params, static)
    mean, std = jax.vmap(policy.distribution)(turned)
    log_ratio = norm.logpdf(action, mean, std).sum(axis=-1) - log_prob
    ratio = jnp.exp(log_ratio)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    bounded = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    gain = jnp.minimum(ratio * advantage, bounded * advantage).mean()
    v = jax.vmap(lambda x: critic(seen(x, policy.inputs, policy.scale))[0])(turned)
    entropy = jnp.log(std).sum(axis=-1).mean()
    kl = (ratio - 1 - log_ratio).mean()
    return -gain + ((v - target) ** 2).mean() - config.entropy * entropy, kl
