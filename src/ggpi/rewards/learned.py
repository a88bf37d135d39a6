"""A reward of which only samples are known: regression by a small network.

    r(x, a) ≈ m + s · f((x − mₓ)/sₓ, (a − mₐ)/sₐ),   f = argmin Σ (f − (r − m)/s)²

The paper assumes a reward that is given or learned; this is the second case. Samples may come from anywhere. A tenth
of them is held out and never looked at in training, so that the score is one of new samples:

    RMSE² = mean (r − r̂)²,   R² = 1 − RMSE² / variance of r      1 is perfect, 0 is what the mean of r scores

The squared error makes it the mean reward where rewards are random. What is learned is a module of arrays: another
reward of the same sizes needs no new compilation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ggpi._jax.jit import fast_jit
from ggpi._jax.networks import MLP, mlp
from ggpi._jax.shapes import Lead, check_positive, check_result, floats
from ggpi.progress import progress
from ggpi.rewards import Form, Reward
from ggpi.types import Key

FORMS = ("state_action", "state", "arrival")
LEAST = 100
"""Samples that are needed: fewer would leave less than ten to score on."""
CHUNK = 500
"""Steps between two looks of Python at the training."""


@dataclass(frozen=True, eq=False)
class LearnedReward(Reward):
    """A reward that was learned from samples, and how well it predicts those that it has not seen."""

    r2: float
    """The share of the held-out rewards' variance that is explained: 1 is perfect."""
    rmse: float
    """The root of the mean squared error on the held-out samples, in the reward's units."""
    num_samples: int
    """All samples, the held-out ones among them."""

    def __str__(self) -> str:
        return (
            f"{self.form} reward learned from {self.num_samples} samples; "
            f"held out: R² {self.r2:.3f}, RMSE {self.rmse:.3g}"
        )


class RewardNetwork(eqx.Module):
    """r(x, a) or r(x) as a network on normalised numbers; discrete actions are one-hot."""

    network: MLP
    state_mean: Float[Array, "..."]
    state_scale: Float[Array, "..."]
    action_mean: Float[Array, "..."]
    action_scale: Float[Array, "..."]
    reward_mean: Float[Array, "..."]
    reward_scale: Float[Array, "..."]
    num_actions: int | None = eqx.field(static=True)
    """The number of discrete actions; None when they are vectors, or not looked at."""

    def check_parts(self, lead: Lead) -> None:
        """A network whose inputs are states, or states and actions, and whose output is one number."""
        for name in ("state", "action", "reward"):
            check_positive(f"{name}_scale", getattr(self, f"{name}_scale"))
        state, inputs = floats(*self.state_mean.shape), self.network.weights[0].shape[0]
        given = [] if inputs == self.state_mean.size else [floats(*self.action_mean.shape)]
        if given and self.num_actions is not None:
            given = [jax.ShapeDtypeStruct((), jnp.int32)]
        check_result(self.__call__, (state, *given), ((), "f"))

    def __call__(self, state: Any, *action: Any) -> Any:
        """The reward of one state (and action), in its own units."""
        if jnp.shape(state) != self.state_mean.shape:
            wanted = list(self.state_mean.shape)
            raise ValueError(
                f"this reward was learned on states of shape {wanted}, got {list(jnp.shape(state))}"
            )
        return self.reward_mean + self.reward_scale * self.normalised(state, *action)

    def normalised(self, state: Any, *action: Any) -> Any:
        """(r − m)/s: what the network is trained on."""
        inputs = [(jnp.asarray(state) - self.state_mean) / self.state_scale]
        for part in action:
            inputs.append(
                (jnp.asarray(part) - self.action_mean) / self.action_scale
                if self.num_actions is None
                else jax.nn.one_hot(part, self.num_actions)
            )
        return self.network(jnp.concatenate(inputs))[0]


def fit_reward(
    states: Any,
    actions: Any,
    rewards: Any,
    *,
    form: Any = "state_action",
    num_actions: int | None = None,
    width: int = 128,
    steps: int = 4_000,
    batch_size: int = 256,
    learning_rate: float = 3e-3,
    held_out: float = 0.1,
    seed: int = 0,
) -> LearnedReward:
    """A reward learned from samples, to be used wherever a reward is; `r2` and `rmse` say how good it is.

    `states` [N, D] and `rewards` [N]; `actions` [N, A], or integers [N] of `num_actions` (one more than the largest
    that was seen, unless given). The `form` is as in `ggpi.rewards`: "state_action" for r(x, a); "state" for
    r(x), with actions=None; "arrival" for ρ(x′), with actions=None and the states that were *entered*.
    """
    given = _checked(states, actions, rewards, form)
    if steps < 1 or batch_size < 1 or width < 1 or not 0 < held_out < 1:
        raise ValueError(
            "steps, batch_size and width are at least 1 and held_out is between 0 and 1, got "
            f"{steps=}, {batch_size=}, {width=}, {held_out=}"
        )
    order = np.random.default_rng(seed).permutation(len(given[-1]))
    num_held = max(1, round(held_out * len(order)))
    kept, held = ([part[rows] for part in given] for rows in (order[num_held:], order[:num_held]))
    if np.ptp(held[-1]) == 0 or np.ptp(kept[-1]) == 0:
        raise ValueError(
            f"nearly all rewards are {held[-1][0]:g} ({len(np.unique(given[-1]))} different among {len(order)}), "
            "so nothing can be learned or scored; give more samples in which they differ"
        )
    init_key, train_key = jax.random.split(jax.random.key(seed))
    fresh = _network(kept, form, _count(given, num_actions, form), width, init_key)
    trained = _train(fresh, kept, steps, batch_size, learning_rate, train_key)
    r2, rmse = _score(trained, held)
    return LearnedReward(form, trained, r2, rmse, len(order))


def _network(kept: list[np.ndarray], form: Form, count: int | None, width: int, key: Key) -> RewardNetwork:
    """A network with fresh weights, in the units of the samples."""
    vectors = kept[1] if form == "state_action" and count is None else np.zeros((1, 0))
    size = kept[0].shape[1] + (count or vectors.shape[1])
    moments = [_moments(part) for part in (kept[0], vectors, kept[-1])]
    (x_mean, x_scale), (a_mean, a_scale), (r_mean, r_scale) = moments
    network = mlp((size, width, width, 1), key=key)
    return RewardNetwork(network, x_mean, x_scale, a_mean, a_scale, r_mean, r_scale, count)


def _train(
    model: RewardNetwork, kept: list[np.ndarray], steps: int, batch_size: int, rate: float, key: Key
) -> RewardNetwork:
    """Adam with a step size that falls to zero."""
    samples = tuple(jnp.asarray(part) for part in kept)
    optimiser = optax.adam(optax.linear_schedule(rate, 0.0, steps))
    network: Any = model.network
    state = network, optimiser.init(network)
    with progress(steps, "fit reward") as advance:
        for done in range(0, steps, CHUNK):
            count = min(CHUNK, steps - done)
            sizes = count, batch_size, rate, steps
            state, loss = _run_chunk((model, samples, key, jnp.asarray(done)), state, sizes)
            if not np.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {loss} by step {done + count}; a smaller learning_rate than {rate} may help"
                )
            advance(done + count, f"unexplained share {loss:.3f}")
    return eqx.tree_at(lambda tree: tree.network, model, state[0])


@fast_jit
def _run_chunk(given: tuple, state: tuple[Any, Any], sizes: tuple) -> tuple[Any, Any]:
    """The network and Adam's moments some steps later, and the mean loss over them."""
    (model, samples, key, first), (count, batch_size, rate, steps) = given, sizes
    optimiser = optax.adam(optax.linear_schedule(rate, 0.0, steps))

    def loss_of(network, rows):
        whole = eqx.tree_at(lambda tree: tree.network, model, network)
        *given, rewards = (part[rows] for part in samples)
        wanted = (rewards - model.reward_mean) / model.reward_scale
        return jnp.mean((jax.vmap(whole.normalised)(*given) - wanted) ** 2)

    def step(state: Any, i: Any) -> Any:
        network, moments = state
        rows = jax.random.randint(jax.random.fold_in(key, i), (batch_size,), 0, len(samples[0]))
        loss, gradient = jax.value_and_grad(loss_of)(network, rows)
        updates, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(network, updates), moments), loss

    state, losses = jax.lax.scan(step, state, first + jnp.arange(count))
    return state, losses.mean()


def _score(model: RewardNetwork, held: list[np.ndarray]) -> tuple[float, float]:
    """R² and RMSE on samples that were not trained on."""
    *given, rewards = held
    errors = np.asarray(_predict(model, given), float) - rewards
    mse = float(np.mean(errors**2))
    return 1 - mse / float(np.var(rewards, dtype=float)), mse**0.5


@fast_jit
def _predict(model: RewardNetwork, given: list[Any]) -> Any:
    return jax.vmap(model)(*given)


def _checked(states: Any, actions: Any, rewards: Any, form: Any) -> list[np.ndarray]:
    """States, actions (if the form has them) and rewards, after everything that could be wrong with them."""
    if form not in FORMS:
        raise ValueError(f"the form of a reward is one of {', '.join(FORMS)}, got {form!r}")
    if (actions is None) == (form == "state_action"):
        wanted = "needs actions" if actions is None else "does not look at actions: give actions=None"
        raise ValueError(f"a {form} reward {wanted}")
    given = {"states": _numbers("states", states, "f"), "rewards": _numbers("rewards", rewards, "f")}
    if actions is not None:
        given["actions"] = _numbers("actions", actions, "iuf")
    shapes = {name: values.shape for name, values in given.items()}
    discrete = actions is not None and given["actions"].dtype.kind in "iu"
    right = len(shapes["states"]) == 2 and len(shapes["rewards"]) == 1
    right &= actions is None or len(shapes["actions"]) == (1 if discrete else 2)
    if not right or len({shape[0] for shape in shapes.values()}) != 1:
        said = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise ValueError(
            "states have shape [N, D], rewards [N], actions [N, A] (or [N] when they are integers), with one N; "
            f"got {said}"
        )
    if len(given["rewards"]) < LEAST:
        raise ValueError(f"a reward is learned from at least {LEAST} samples, got {len(given['rewards'])}")
    return [given["states"], *([] if actions is None else [given["actions"]]), given["rewards"]]


def _numbers(name: str, values: Any, kinds: str) -> np.ndarray:
    """An array in single precision, or of whole numbers from 0; all finite."""
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} are numbers, got type {values.dtype}")
    if values.dtype.kind in "iu" and "i" in kinds:
        if values.size and values.min() < 0:
            raise ValueError(f"discrete {name} are numbers from 0, got {values.min()}")
        return values.astype(np.int32)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at = tuple(map(int, bad[0]))
        raise ValueError(f"{len(bad)} of {values.size} {name} are not finite, the first at index {at}")
    return values.astype(np.float32)


def _count(given: list[np.ndarray], num_actions: int | None, form: Form) -> int | None:
    """How many discrete actions there are."""
    discrete = form == "state_action" and given[1].dtype.kind in "iu"
    if not discrete:
        if num_actions is not None:
            raise ValueError(f"num_actions={num_actions} is for discrete actions, there are none")
        return None
    seen = int(given[1].max()) + 1
    if num_actions is not None and num_actions < seen:
        raise ValueError(f"there are num_actions={num_actions}, but action {seen - 1} was taken")
    return num_actions or seen


def _moments(values: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Mean and deviation; what never varies has deviation 1."""
    if not values.size:
        return jnp.zeros(values.shape[1:]), jnp.ones(values.shape[1:])
    mean, scale = values.mean(axis=0, dtype=float), values.std(axis=0, dtype=float)
    scale = np.where(scale > 1e-6 * np.maximum(np.abs(mean), 1e-6), scale, 1.0)
    return jnp.asarray(mean, jnp.float32), jnp.asarray(scale, jnp.float32)
