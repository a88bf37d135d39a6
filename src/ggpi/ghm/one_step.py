"""One-step models, and how to get far with them: step by step.

A one-step model is a geometric horizon model at β = 0, μ_0(·|x, a) = P(·|x, a), of any kind. Composed for
T ∼ Geometric(1−β) steps it samples μ_β, as a GHM does in one; the errors of the steps add up on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from ggpi.types import GHM, Actor, Key

Terminal = Callable[[Array], Array]
"""Whether a state ends the episode, a JAX function of one state."""


def unroll(
    model: GHM,
    policy: Actor,
    beta: float | Float[Array, ""],
    state: ArrayLike,
    action: ArrayLike,
    *,
    max_steps: int = 1000,
    terminal: Terminal | None = None,
    key: Key,
) -> Array:
    """A sample of μ_β(·|x, a): the state after a Geometric(1−β) number of steps of a one-step model.

    Vmapped, the whole batch takes as long as its longest walk.

    Args:
        model: a one-step model P(·|x, a).
        policy: takes the second and all later actions.
        beta: the horizon.
        state: the first state x.
        action: the first action a.
        max_steps: the largest number of steps; longer ones are cut.
        terminal: states that are not left.
        key: the source of the number of steps, of states and of actions.

    Paper: Fig 17, Prop 2.3
    """
    time_key, walk_key = jax.random.split(key)
    steps = jnp.minimum(jax.random.geometric(time_key, 1 - jnp.asarray(beta)), max_steps)
    return after(model, policy, steps, state, action, terminal=terminal, key=walk_key)


def after(
    model: GHM,
    policy: Actor,
    steps: int | Int[Array, ""],
    state: ArrayLike,
    action: ArrayLike,
    *,
    terminal: Terminal | None = None,
    key: Key,
) -> Array:
    """The state after a number of steps: the first with `action`, the others with the policy's.

    Args:
        model: a one-step model P(·|x, a).
        policy: takes the second and all later actions.
        steps: the number of steps.
        state: the first state x.
        action: the first action a.
        terminal: states that are not left.
        key: the source of states and actions.
    """

    def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, x, a = carry
        model_key, action_key = jax.random.split(jax.random.fold_in(key, t))
        following = model.sample(x, a, key=model_key)
        if terminal is not None:
            following = jnp.where(terminal(x), x, following)
        return t + 1, following, policy.sample(following, key=action_key)

    state, action = jnp.asarray(state), jnp.asarray(action)
    return jax.lax.while_loop(lambda carry: carry[0] < steps, step, (jnp.zeros((), int), state, action))[1]
