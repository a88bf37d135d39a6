"""What every learned geometric horizon model can do; VAE and flow answer to it.

A model is written for one pair (x, a) and takes its noise as an argument, so that many are vmapped together
and noise is drawn in bulk; `losses` takes a batch, for models that are faster so. `loss` is a sample of an upper
bound of −log μ(x′|x, a) in the model's own coordinates: the cross-entropy of CEMC and CETD, whose targets x′ come
from elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi._jax.shapes import Lead, check_result, floats
from ggpi.ghm.coordinates import Frame
from ggpi.types import Key

State = Float[Array, "D"]


class AbstractGHM(eqx.Module):
    """A learned μ(·|x, a) over state vectors."""

    frame: eqx.AbstractVar[Frame]

    @property
    @abstractmethod
    def noise_size(self) -> int:
        """How many standard normal numbers one sample takes."""

    @property
    @abstractmethod
    def loss_noise_size(self) -> int:
        """How many standard normal numbers one evaluation of the loss takes."""

    @property
    def working_size(self) -> int:
        """About how many numbers are held at a time while one sample is drawn: what the memory of plans is made of."""
        return self.frame.state_size

    @abstractmethod
    def push(self, state: Any, action: Any, noise: Any) -> Any:
        """A sample x′ ∼ μ(·|x, a) as a function of standard normal noise."""

    @abstractmethod
    def loss(self, state: Any, action: Any, target: Any, noise: Any) -> Any:
        """A sample of an upper bound of −log μ(target|x, a), up to the frame's volume."""

    def losses(self, states: Any, actions: Any, targets: Any, noise: Any) -> Any:
        """`loss` for every entry of a batch."""
        return jax.vmap(self.loss)(states, actions, targets, noise)

    def observe(self, states: Any, actions: Any, targets: Any) -> AbstractGHM:
        """The model after it has seen a batch, for those that keep running statistics."""
        return self

    def check_parts(self, lead: Lead) -> None:
        """Samples and losses can be computed: the arrays fit each other."""
        state, (shape, kind) = floats(*lead, self.frame.state_size), self.frame.action_form
        action = jax.ShapeDtypeStruct((*lead, *shape), jnp.float32 if kind == "f" else jnp.int32)
        noises = floats(*lead, self.noise_size), floats(*lead, self.loss_noise_size)
        arrays, rest = eqx.partition(self, eqx.is_array)
        check_result(
            lambda arrays, *given: eqx.combine(arrays, rest).push(*given),
            (arrays, state, action, noises[0]),
            ((self.frame.state_size,), "f"),
            lead,
        )
        check_result(
            lambda arrays, *given: eqx.combine(arrays, rest).loss(*given),
            (arrays, state, action, state, noises[1]),
            ((), "f"),
            lead,
        )

    def sample(self, state: Any, action: Any, *, key: Key) -> Any:
        """x′ ∼ μ(·|x, a), the state after a geometric time."""
        return self.push(state, action, jax.random.normal(key, (self.noise_size,)))


class AbstractDensityGHM(AbstractGHM):
    """A model whose density can be computed, as LL2TD needs."""

    @abstractmethod
    def log_prob(self, target: Any, state: Any, action: Any) -> Any:
        """log μ(target|x, a), in raw units."""

    @property
    def loss_noise_size(self) -> int:
        return 0

    def loss(self, state: Any, action: Any, target: Any, noise: Any) -> Any:
        """−log μ(target|x, a) in the model's own coordinates."""
        return -self.log_prob(target, state, action) - self.frame.log_volume
