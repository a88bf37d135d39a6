"""What a learned geometric horizon model is."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num
from numpy.typing import ArrayLike

from ggpi._jax.shapes import Lead, check_result, floats
from ggpi.ghm.coordinates import Frame
from ggpi.types import Key


class AbstractGHM(eqx.Module):
    """A learned μ(·|x, a) over state vectors; a class of your own needs its abstract methods and nothing else.

    Models take their noise as an argument, so that many are vmapped together and noise is drawn in bulk. `push` is
    written for one pair (x, a), `loss` for a batch of them.
    """

    frame: eqx.AbstractVar[Frame]
    """Normalisation of states and actions, fitted to the data of this model."""

    @property
    @abstractmethod
    def noise_size(self) -> int:
        """How many standard normal numbers one sample takes."""

    @property
    @abstractmethod
    def loss_noise_size(self) -> int:
        """How many standard normal numbers the loss of one pair takes; 0 if it is exact."""

    @abstractmethod
    def push(
        self, state: Float[Array, "D"], action: Num[Array, "*A"], noise: Float[Array, "n"]
    ) -> Float[Array, "D"]:
        """A sample x′ ∼ μ(·|x, a) as a function of standard normal noise."""

    @abstractmethod
    def loss(
        self,
        state: Float[Array, "B D"],
        action: Num[Array, "B *A"],
        target: Float[Array, "B D"],
        noise: Float[Array, "B n"],
    ) -> Float[Array, "B"]:
        """What training on a target minimises.

        −log μ(target|x, a) or a sample of an upper bound of it, in the units of the frame (`frame.change`); models
        that follow a path regress a field instead.
        """

    @property
    def working_size(self) -> int:
        """About how many floats are held at a time while one sample is drawn: two layers, each as the widest array."""
        arrays = jax.tree.leaves(eqx.filter(self, eqx.is_array))
        return 2 * max(self.frame.state_size, *(array.shape[-1] for array in arrays if array.ndim))

    def check_parts(self, lead: Lead) -> None:
        """Samples and losses can be computed: the arrays fit each other."""
        size, (shape, kind) = self.frame.state_size, self.frame.action_form
        dtype = jnp.float32 if kind == "f" else jnp.int32
        arrays, rest = eqx.partition(self, eqx.is_array)
        check_result(
            lambda arrays, *given: eqx.combine(arrays, rest).push(*given),
            (
                arrays,
                floats(*lead, size),
                jax.ShapeDtypeStruct((*lead, *shape), dtype),
                floats(*lead, self.noise_size),
            ),
            ((size,), "f"),
            lead,
        )
        states, actions = floats(*lead, 1, size), jax.ShapeDtypeStruct((*lead, 1, *shape), dtype)
        check_result(
            lambda arrays, *given: eqx.combine(arrays, rest).loss(*given),
            (arrays, states, actions, states, floats(*lead, 1, self.loss_noise_size)),
            ((1,), "f"),
            lead,
        )

    def sample(self, state: ArrayLike, action: ArrayLike, *, key: Key) -> Float[Array, "D"]:
        """x′ ∼ μ(·|x, a), the state after a geometric time."""
        return self.push(jnp.asarray(state), jnp.asarray(action), jax.random.normal(key, (self.noise_size,)))


class AbstractDensity(eqx.Module):
    """A model whose density can be computed, as LL2TD needs."""

    @abstractmethod
    def log_prob(
        self, target: Float[Array, "D"], state: Float[Array, "D"], action: Num[Array, "*A"]
    ) -> Float[Array, ""]:
        """log μ(target|x, a), in raw units."""


class AbstractDensityGHM(AbstractGHM, AbstractDensity):
    """A model that is trained by its density."""

    @property
    def loss_noise_size(self) -> int:
        return 0

    def loss(
        self,
        state: Float[Array, "B D"],
        action: Num[Array, "B *A"],
        target: Float[Array, "B D"],
        noise: Float[Array, "B n"],
    ) -> Float[Array, "B"]:
        """−log μ(target|x, a) in the units of the frame."""
        return -jax.vmap(self.log_prob)(target, state, action) - self.frame.log_volume


class AbstractObserver(eqx.Module):
    """A model with running statistics, such as those of batch norms, which gradients do not reach."""

    @abstractmethod
    def observe(
        self, state: Float[Array, "B D"], action: Num[Array, "B *A"], target: Float[Array, "B D"]
    ) -> AbstractObserver:
        """The model after a batch; training calls it once for each."""
