"""Action heads: turn the output of a function of the state into the executed action.

    Choice        a = f(x)                       one of A
    Categorical   a ∼ softmax(f(x))              one of A
    Deterministic a = clip(f(x))                 a vector
    Clipped       a = clip(m + s ε)              (m, s) = f(x), ε ∼ N(0, I)
    Squashed      a = unscale(tanh(m + s ε))     (m, log s) = f(x)
    Mode          a = mode of another policy     argmax, m, or unscale(tanh(m))

`f` takes one state and is itself a module, so its arrays are stacked with the others. Each policy has an
`action_space`, which must match the environment's.
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

from ggpi._jax.batching import Function, over_states
from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.policies.gaussian import AbstractGaussianPolicy, check_bounds
from ggpi.policies.networks import Network
from ggpi.types import ArrayLike, Key


class ChoicePolicy(eqx.Module):
    """Always f(x), one of A actions."""

    function: Function
    name: str
    num_actions: int = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """The function returns one of the actions."""
        _check(self, ((), "i"), self.num_actions)

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """The action, which is deterministic."""
        return self.mode(state)

    def mode(self, state: ArrayLike) -> Array:
        """The action, for one state or for states with any leading axes."""
        return over_states(self.function, state).astype(jnp.int32)

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.num_actions)


class CategoricalPolicy(eqx.Module):
    """π(a|x) ∝ exp(f(x)ₐ)."""

    function: Function
    name: str
    num_actions: int = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """The function returns a logit for each action."""
        _check(self, ((), "i"), self.num_actions)

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """A sampled action, for one state or for states with any leading axes."""
        return jax.random.categorical(key, over_states(self.function, state)).astype(jnp.int32)

    def mode(self, state: ArrayLike) -> Array:
        """The most probable action; the first one on a tie."""
        return jnp.argmax(over_states(self.function, state), axis=-1).astype(jnp.int32)

    def log_prob(self, state: ArrayLike, action: ArrayLike) -> Array:
        """log π(a|x)."""
        logits = jax.nn.log_softmax(over_states(self.function, state))
        return jnp.take_along_axis(logits, jnp.asarray(action)[..., None], axis=-1)[..., 0]

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.num_actions)


class DeterministicPolicy(eqx.Module):
    """Always f(x), clipped to the bounds."""

    function: Function
    name: str
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """The function returns an action for the bounds."""
        _check(self, (self.low.shape, "f"))

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """The executed action, which is deterministic."""
        return self.mode(state)

    def mode(self, state: ArrayLike) -> Array:
        """The action, for one state or for states with any leading axes."""
        return jnp.clip(over_states(self.function, state), self.low, self.high)

    @property
    def action_space(self) -> Box:
        return _box(self.low, self.high)


class ClippedGaussianPolicy(AbstractGaussianPolicy):
    """a = clip(m + s ε) with (m, s) = f(x)."""

    function: Function
    name: str
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """The function returns a mean and a standard deviation for each bound."""
        _check(self, (self.low.shape, "f"))

    def distribution(self, state: Float[Array, "D"]) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """Mean and standard deviation before clipping, in one state."""
        return self.function(state)

    @property
    def action_space(self) -> Box:
        return _box(self.low, self.high)


class SquashedGaussianPolicy(eqx.Module):
    """a = low + (high − low)(tanh(m + s ε) + 1)/2 with (m, log s) = f(x)."""

    function: Function
    name: str
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """The function returns a mean and a log standard deviation for each bound."""
        _check(self, (self.low.shape, "f"))

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """The executed action, for one state or for states with any leading axes."""
        mean, log_std = over_states(self.function, state)
        return self._unscale(mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape))

    def mode(self, state: ArrayLike) -> Array:
        """The action of the Gaussian's mean: the deterministic action of SAC."""
        return self._unscale(over_states(self.function, state)[0])

    def log_prob(self, state: ArrayLike, action: ArrayLike) -> Array:
        """log π(a|x), a density in the units of the action."""
        mean, log_std = over_states(self.function, state)
        half = (self.high - self.low) / 2
        edge = 1 - jnp.finfo(jnp.float32).eps
        squashed = jnp.clip((jnp.asarray(action) - self.low) / half - 1, -edge, edge)
        density = norm.logpdf(jnp.arctanh(squashed), mean, jnp.exp(log_std))
        return (density - jnp.log1p(-(squashed**2)) - jnp.log(half)).sum(axis=-1)

    def _unscale(self, raw: Array) -> Array:
        action = self.low + 0.5 * (jnp.tanh(raw) + 1) * (self.high - self.low)
        return jnp.clip(action, self.low, self.high)

    @property
    def action_space(self) -> Box:
        return _box(self.low, self.high)


class ModePolicy(eqx.Module):
    """Always the mode of another policy."""

    policy: Any

    def check_parts(self, lead: Lead) -> None:
        """The policy has a mode."""
        if not hasattr(self.policy, "mode"):
            raise ValueError(f"a {type(self.policy).__name__} has no mode")

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """The mode."""
        return self.policy.mode(state)

    def mode(self, state: ArrayLike) -> Array:
        """The mode."""
        return self.policy.mode(state)

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def action_space(self) -> Box | Discrete:
        return self.policy.action_space


ContinuousHead = DeterministicPolicy | ClippedGaussianPolicy | SquashedGaussianPolicy
Head = ChoicePolicy | CategoricalPolicy | ContinuousHead


def _check(policy: Head, expected: tuple[tuple[int, ...], str], num_actions: int | None = None) -> None:
    """Raises unless the parts of a loaded policy match each other."""
    if not (isinstance(policy.function, eqx.Module) and callable(policy.function)):
        raise ValueError(f"function is a {type(policy.function).__name__}, expected a callable module")
    if isinstance(policy, ContinuousHead):
        check_shape("high", policy.high, policy.low.shape)
        check_bounds(policy.low, policy.high)
    network = getattr(policy.function, "network", policy.function)
    if not isinstance(network, Network):
        return
    if num_actions is not None and network.biases[-1].shape != (num_actions,):
        raise ValueError(f"the network has {network.biases[-1].shape} outputs for {num_actions} actions")
    check_policy(policy, len(network.normalise.mean), expected)


def _box(low: Array, high: Array) -> Box:
    return Box(np.asarray(low, np.float32), np.asarray(high, np.float32), dtype=np.float32)
