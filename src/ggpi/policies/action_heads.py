"""From what a function says about a state to the action that is executed, whoever wrote the function.

    Choice        a = f(x)                       one of A
    Categorical   a ∼ softmax(f(x))              one of A
    Deterministic a = clip(f(x))                 a vector
    Clipped       a = clip(m + s ε)              (m, s) = f(x), ε ∼ N(0, I)
    Squashed      a = unscale(tanh(m + s ε))     (m, log s) = f(x)
    Mode          a = mode of another policy     argmax, m, or unscale(tanh(m))

`f` is written for one state and is itself a module, so its arrays are stacked like any others. Each kind knows
its action space, which has to be the environment's.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.policies.gaussian import AbstractGaussianPolicy, check_bounds
from ggpi.policies.networks import Network
from ggpi.types import Key


class ChoicePolicy(eqx.Module):
    """Always f(x), one of A actions."""

    function: Any
    name: str
    num_actions: int = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """The function chooses one of the actions."""
        _check(self, ((), "i"), self.num_actions)

    def sample(self, state: Any, *, key: Key) -> Any:
        """The action; nothing is random."""
        return self.mode(state)

    def mode(self, state: Any) -> Any:
        """The action, for one state or for leading axes of them."""
        return over_states(self.function, state).astype(jnp.int32)

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.num_actions)


class CategoricalPolicy(eqx.Module):
    """π(a|x) ∝ exp(f(x)ₐ)."""

    function: Any
    name: str
    num_actions: int = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """The function gives a logit for each action."""
        _check(self, ((), "i"), self.num_actions)

    def sample(self, state: Any, *, key: Key) -> Any:
        """A draw, for one state or for leading axes of them."""
        return jax.random.categorical(key, over_states(self.function, state)).astype(jnp.int32)

    def mode(self, state: Any) -> Any:
        """The most probable action; the first of them on a tie."""
        return jnp.argmax(over_states(self.function, state), axis=-1).astype(jnp.int32)

    def log_prob(self, state: Any, action: Any) -> Any:
        """log π(a|x)."""
        logits = jax.nn.log_softmax(over_states(self.function, state))
        return jnp.take_along_axis(logits, jnp.asarray(action)[..., None], axis=-1)[..., 0]

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.num_actions)


class DeterministicPolicy(eqx.Module):
    """Always f(x), clipped to the bounds."""

    function: Any
    name: str
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """The function gives an action within bounds."""
        _check(self, (self.low.shape, "f"))

    def sample(self, state: Any, *, key: Key) -> Any:
        """The action that is executed; nothing is random."""
        return self.mode(state)

    def mode(self, state: Any) -> Any:
        """The action, for one state or for leading axes of them."""
        return jnp.clip(over_states(self.function, state), self.low, self.high)

    @property
    def action_space(self) -> Box:
        return _box(self.low, self.high)


class ClippedGaussianPolicy(AbstractGaussianPolicy):
    """a = clip(m + s ε) with (m, s) = f(x)."""

    function: Any
    name: str
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """The function gives a mean and a deviation for each bound."""
        _check(self, (self.low.shape, "f"))

    def distribution(self, state: Any) -> Any:
        """Mean and standard deviation before clipping, in one state."""
        return self.function(state)

    @property
    def action_space(self) -> Box:
        return _box(self.low, self.high)


class SquashedGaussianPolicy(eqx.Module):
    """a = low + (high − low)(tanh(m + s ε) + 1)/2 with (m, log s) = f(x)."""

    function: Any
    name: str
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """The function gives a mean and a log-deviation for each bound."""
        _check(self, (self.low.shape, "f"))

    def sample(self, state: Any, *, key: Key) -> Any:
        """The action that is executed, for one state or for leading axes of them."""
        mean, log_std = over_states(self.function, state)
        return self._unscale(mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape))

    def mode(self, state: Any) -> Any:
        """The action of the Gaussian's mean, which is what SAC calls deterministic."""
        return self._unscale(over_states(self.function, state)[0])

    def log_prob(self, state: Any, action: Any) -> Any:
        """log π(a|x), a density in the units of the action."""
        mean, log_std = over_states(self.function, state)
        half = (self.high - self.low) / 2
        edge = 1 - jnp.finfo(jnp.float32).eps
        squashed = jnp.clip((jnp.asarray(action) - self.low) / half - 1, -edge, edge)
        density = norm.logpdf(jnp.arctanh(squashed), mean, jnp.exp(log_std))
        return (density - jnp.log1p(-(squashed**2)) - jnp.log(half)).sum(axis=-1)

    def _unscale(self, raw: Any) -> Any:
        action = self.low + 0.5 * (jnp.tanh(raw) + 1) * (self.high - self.low)
        return jnp.clip(action, self.low, self.high)

    @property
    def action_space(self) -> Box:
        return _box(self.low, self.high)


class ModePolicy(eqx.Module):
    """Always the mode of another policy."""

    policy: Any

    def check_parts(self, lead: Lead) -> None:
        """There is a mode."""
        if not hasattr(self.policy, "mode"):
            raise ValueError(f"a {type(self.policy).__name__} has no mode")

    def sample(self, state: Any, *, key: Key) -> Any:
        """The most usual action; nothing is random."""
        return self.policy.mode(state)

    def mode(self, state: Any) -> Any:
        """The same action."""
        return self.policy.mode(state)

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def action_space(self) -> Box | Discrete:
        return self.policy.action_space


def over_states(function: Any, state: Any) -> Any:
    """A function of one state on leading axes of them: a state is an integer or a vector of floats."""
    state = jnp.asarray(state)
    discrete = jnp.issubdtype(state.dtype, jnp.integer)
    state = state if discrete else state.astype(jnp.float32)
    for _ in range(state.ndim - (0 if discrete else 1)):
        function = jax.vmap(function)
    return function(state)


def _check(policy: Any, expected: tuple[tuple[int, ...], str], num_actions: int | None = None) -> None:
    """The parts of a loaded policy fit each other."""
    if not (isinstance(policy.function, eqx.Module) and callable(policy.function)):
        raise ValueError(
            f"function is a {type(policy.function).__name__}, expected a module that can be called"
        )
    if num_actions is None:
        check_shape("high", policy.high, policy.low.shape)
        check_bounds(policy.low, policy.high)
    network = getattr(policy.function, "network", policy.function)
    if not isinstance(network, Network):
        return
    if num_actions is not None and network.biases[-1].shape != (num_actions,):
        raise ValueError(f"a network of {network.biases[-1].shape} outputs for {num_actions} actions")
    check_policy(policy, len(network.normalise.mean), expected)


def _box(low: Any, high: Any) -> Box:
    return Box(np.asarray(low, np.float32), np.asarray(high, np.float32), dtype=np.float32)
