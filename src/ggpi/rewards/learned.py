"""Rewards learned from samples, by regression with a small network.

    r(x, a) ≈ m + s · f((x − mₓ)/sₓ, (a − mₐ)/sₐ),   f = argmin Σ (f − (r − m)/s)²

The paper assumes a reward that is known or learned; this is the second case. Samples may come from anywhere. A tenth of
them is held out of training, to measure the error on new samples:

    RMSE² = mean (r − r̂)²,   R² = 1 − RMSE² / variance of r      1 is perfect, 0 is the score of the mean of r

Where rewards are random, the squared error makes it the mean reward. The result is a module of arrays, so another
reward of the same sizes needs no new compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from ggpi._jax.jit import fast_jit
from ggpi._jax.networks import MLP, mlp
from ggpi._jax.shapes import Lead, check_positive, check_result, floats
from ggpi.progress import progress
from ggpi.rewards.forms import Form, Reward
from ggpi.rewards.samples import Samples, action_count, checked_form, checked_samples, split
from ggpi.types import ArrayLike, Key

CHUNK = 500
"""Steps per compiled chunk; progress is reported between chunks."""


@dataclass(frozen=True)
class Regression:
    """How a reward is learned."""

    width: int = 128
    """Hidden units of each of the two layers."""
    steps: int = 4_000
    batch_size: int = 256
    learning_rate: float = 3e-3
    """Of Adam in the first step; it decreases linearly to 0."""
    held_out: float = 0.1
    """The share of samples that is held out."""

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size, self.width) < 1 or not 0 < self.held_out < 1:
            raise ValueError(
                f"steps, batch_size and width are at least 1 and held_out is between 0 and 1, got {self}"
            )


@dataclass(frozen=True, eq=False)
class LearnedReward(Reward):
    """A reward that was learned from samples, and its error on held-out samples."""

    r2: float
    """The share of the held-out rewards' variance that is explained: 1 is perfect."""
    rmse: float
    """The root mean squared error on the held-out samples, in units of the reward."""
    num_samples: int
    """The number of samples, including the held-out ones."""

    def __str__(self) -> str:
        return (
            f"{self.form} reward learned from {self.num_samples} samples; "
            f"held out: R² {self.r2:.3f}, RMSE {self.rmse:.3g}"
        )


class RewardNetwork(eqx.Module):
    """r(x, a) or r(x) as a network on normalised inputs; discrete actions are one-hot."""

    network: MLP
    state_mean: Float[Array, "..."]
    state_scale: Float[Array, "..."]
    action_mean: Float[Array, "..."]
    action_scale: Float[Array, "..."]
    reward_mean: Float[Array, "..."]
    reward_scale: Float[Array, "..."]
    num_actions: int | None = eqx.field(static=True)
    """The number of discrete actions; None if actions are vectors or not used."""

    def check_parts(self, lead: Lead) -> None:
        """The inputs of the network are states, or states and actions, and its output is one number."""
        for name in ("state", "action", "reward"):
            check_positive(f"{name}_scale", getattr(self, f"{name}_scale"))
        arguments = [floats(*self.state_mean.shape)]
        if self.network.weights[0].shape[0] != self.state_mean.size:
            is_discrete = self.num_actions is not None
            arguments.append(
                jax.ShapeDtypeStruct((), jnp.int32) if is_discrete else floats(*self.action_mean.shape)
            )
        check_result(self.__call__, tuple(arguments), ((), "f"))

    def __call__(self, state: ArrayLike, *action: ArrayLike) -> Array:
        """The reward of one state (and action), in its own units."""
        if jnp.asarray(state).shape != self.state_mean.shape:
            expected = list(self.state_mean.shape)
            raise ValueError(
                f"this reward was learned on states of shape {expected}, got {list(jnp.asarray(state).shape)}"
            )
        return self.reward_mean + self.reward_scale * self.normalised(state, *action)

    def normalised(self, state: ArrayLike, *action: ArrayLike) -> Array:
        """(r − m)/s, which the network is trained on."""
        inputs = [(jnp.asarray(state) - self.state_mean) / self.state_scale]
        for part in action:
            inputs.append(
                (jnp.asarray(part) - self.action_mean) / self.action_scale
                if self.num_actions is None
                else jax.nn.one_hot(part, self.num_actions)
            )
        return self.network(jnp.concatenate(inputs))[0]


def fit_reward(
    states: ArrayLike,
    actions: ArrayLike | None,
    rewards: ArrayLike,
    *,
    form: Form | str = "state_action",
    num_actions: int | None = None,
    regression: Regression | None = None,
    seed: int = 0,
) -> LearnedReward:
    """Learns a reward from samples; the result can be used like any other reward.

    Its `r2` and `rmse` are measured on held-out samples.

    Args:
        states: [N, D]; for an arrival reward, the states that were *entered*.
        actions: [N, A], or integers [N]; None for rewards of states.
        rewards: [N].
        form: As in `ggpi.rewards`: "state_action" for r(x, a), "state" for r(x), "arrival" for ρ(x′).
        num_actions: The number of discrete actions; by default one more than the largest in `actions`.
        regression: Network size, steps and learning rate; by default `Regression()`.
        seed: Of the split, the initial weights and the batches.
    """
    chosen = regression or Regression()
    samples = checked_samples(states, actions, rewards, form)
    kept, held = split(samples, chosen.held_out, seed)
    init_key, train_key = jax.random.split(jax.random.key(seed))
    initial = _network(kept, action_count(samples, num_actions), chosen.width, init_key)
    trained = _train(initial, kept, chosen, train_key)
    r2, rmse = _score(trained, held)
    return LearnedReward(checked_form(form), trained, r2, rmse, len(samples.rewards))


def _network(samples: Samples, count: int | None, width: int, key: Key) -> RewardNetwork:
    """A network with initial weights, in the units of the samples."""
    actions = samples.actions
    vectors = actions if actions is not None and count is None else np.zeros((1, 0))
    network = mlp((samples.states.shape[1] + (count or vectors.shape[1]), width, width, 1), key=key)
    moments = (_moments(values) for values in (samples.states, vectors, samples.rewards))
    (state_mean, state_scale), (action_mean, action_scale), (mean, scale) = moments
    return RewardNetwork(network, state_mean, state_scale, action_mean, action_scale, mean, scale, count)


def _train(model: RewardNetwork, samples: Samples, chosen: Regression, key: Key) -> RewardNetwork:
    """Adam with a learning rate that decreases to zero."""
    inputs, rewards = (
        tuple(jnp.asarray(part) for part in samples.inputs),
        jnp.asarray(samples.rewards),
    )
    state = model.network, _optimiser(chosen).init(eqx.filter(model.network, eqx.is_array))
    with progress(chosen.steps, "fit reward") as advance:
        for done in range(0, chosen.steps, CHUNK):
            steps = done + jnp.arange(min(CHUNK, chosen.steps - done))
            state, loss = _run_chunk(model, inputs, rewards, state, chosen, steps, key=key)
            if not np.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {loss} by step {done + len(steps)}; a smaller learning_rate than "
                    f"{chosen.learning_rate} may help"
                )
            advance(done + len(steps), f"unexplained share {loss:.3f}")
    return eqx.tree_at(lambda tree: tree.network, model, state[0])


def _optimiser(chosen: Regression) -> optax.GradientTransformation:
    return optax.adam(optax.linear_schedule(chosen.learning_rate, 0.0, chosen.steps))


@fast_jit
def _run_chunk(
    model: RewardNetwork,
    inputs: tuple[Array, ...],
    rewards: Float[Array, "N"],
    state: tuple[MLP, optax.OptState],
    chosen: Regression,
    steps: Int[Array, "steps"],
    *,
    key: Key,
) -> Any:
    """The network and Adam's moments after these steps, and the mean loss."""
    optimiser = _optimiser(chosen)

    def loss_of(network: MLP, rows: Array) -> Array:
        whole = eqx.tree_at(lambda tree: tree.network, model, network)
        expected = (rewards[rows] - model.reward_mean) / model.reward_scale
        return jnp.mean((jax.vmap(whole.normalised)(*(part[rows] for part in inputs)) - expected) ** 2)

    def step(state: tuple[MLP, optax.OptState], i: Array) -> tuple[tuple[MLP, optax.OptState], Array]:
        network, moments = state
        rows = jax.random.randint(jax.random.fold_in(key, i), (chosen.batch_size,), 0, len(rewards))
        loss, gradient = jax.value_and_grad(loss_of)(network, rows)
        updates, moments = optimiser.update(gradient, moments)
        return (eqx.apply_updates(network, updates), moments), loss

    state, losses = jax.lax.scan(step, state, steps)
    return state, losses.mean()


def _score(model: RewardNetwork, held: Samples) -> tuple[float, float]:
    """R² and RMSE on held-out samples."""
    errors = np.asarray(_predict(model, held.inputs), float) - held.rewards
    mse = float(np.mean(errors**2))
    return 1 - mse / float(np.var(held.rewards, dtype=float)), mse**0.5


@fast_jit
def _predict(model: RewardNetwork, inputs: Sequence[Array]) -> Array:
    return jax.vmap(model)(*inputs)


def _moments(values: np.ndarray) -> tuple[Array, Array]:
    """Mean and standard deviation; 1 for values that do not vary."""
    if not values.size:
        return jnp.zeros(values.shape[1:]), jnp.ones(values.shape[1:])
    mean, scale = values.mean(axis=0, dtype=float), values.std(axis=0, dtype=float)
    scale = np.where(scale > 1e-6 * np.maximum(np.abs(mean), 1e-6), scale, 1.0)
    return jnp.asarray(mean, jnp.float32), jnp.asarray(scale, jnp.float32)
