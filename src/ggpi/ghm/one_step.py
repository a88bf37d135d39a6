"""One-step models, and how to get far with them: step by step.

A one-step model is a geometric horizon model at β = 0, μ_0(·|x, a) = P(·|x, a), of any kind. Composed for
T ∼ Geometric(1−β) steps it samples μ_β, as a GHM does in one; what is wrong with a step adds up on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ggpi.types import GHM, Key, Policy

Terminal = Callable[[Any], Any]


def unroll(
    model: GHM,
    policy: Policy,
    beta: Any,
    state: Any,
    action: Any,
    *,
    max_steps: int = 1000,
    terminal: Terminal | None = None,
    key: Key,
) -> Any:
    """A sample of μ_β(·|x, a): the state after a Geometric(1−β) number of steps of a one-step model.

    T is cut at `max_steps`. Vmapped, the whole batch takes as long as its longest walk.

    Paper: Fig 17, Prop 2.3
    """
    time_key, walk_key = jax.random.split(key)
    steps = jnp.minimum(jax.random.geometric(time_key, 1 - jnp.asarray(beta)), max_steps)
    return after(model, policy, steps, state, action, terminal=terminal, key=walk_key)


def after(
    model: GHM,
    policy: Policy,
    steps: Any,
    state: Any,
    action: Any,
    *,
    terminal: Terminal | None = None,
    key: Key,
) -> Any:
    """The state after a number of steps: the first with `action`, the others with the policy's.

    Terminal states are not left.
    """

    def step(carry):
        t, x, a = carry
        model_key, action_key = jax.random.split(jax.random.fold_in(key, t))
        following = model.sample(x, a, key=model_key)
        if terminal is not None:
            following = jnp.where(terminal(x), x, following)
        return t + 1, following, policy.sample(following, key=action_key)

    state, action = jnp.asarray(state), jnp.asarray(action)
    return jax.lax.while_loop(lambda carry: carry[0] < steps, step, (jnp.zeros((), int), state, action))[1]
