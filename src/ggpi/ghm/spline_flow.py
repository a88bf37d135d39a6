"""Conditional normalising flow: an invertible map turns x′ into noise, so the density of x′ is exact.

    log μ(x′|x, a) = log N(f(y; c); 0, I) + log |∂f/∂y| − log volume,  y = change of state, c = (x, a)

f is a chain of layers, each a batch norm, an invertible linear map (triangular factors and a reversal of
the order, after Glow's 1×1 convolution) and a coupling: a network of the first half of the coordinates and of c
outputs the splines that bend the second half. The reversal makes the next layer bend the other half. A state of
one coordinate has an empty first half: its splines depend on c alone.

Where a `StateSpec` has rotations, `push` makes them orthonormal afterwards; the density is that before.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Num

from ggpi._jax.networks import MLP, mlp
from ggpi._jax.shapes import Lead, check_positive
from ggpi.ghm.abstract import AbstractDensityGHM, AbstractObserver
from ggpi.ghm.batch_norm import BatchNorm, batch_norm
from ggpi.ghm.coordinates import Frame, Predict
from ggpi.ghm.spline import bend, num_raw, unbend
from ggpi.types import Key

State = Float[Array, "D"]
Vector = Float[Array, "d"]
"""Of the coordinates that are predicted."""
Action = Num[Array, "*A"]
Context = Float[Array, "c"]
Scalar = Float[Array, ""]


@dataclass(frozen=True)
class FlowConfig:
    """The shape of a flow."""

    layers: int = 2
    """Coupling layers."""
    hidden: int = 256
    """Units of the one hidden layer behind the splines."""
    knots: int = 8
    """Inner knots of each spline."""
    interval: float = 5.0
    """Splines bend coordinates between minus this and this."""
    momentum: float = 0.01
    """The weight of the newest batch in the running statistics of batch norms."""
    predict: Predict = "change"
    """The change of state, or the state itself."""

    def build(self, frame: Frame, *, key: Key) -> Flow:
        """A model with fresh weights."""
        return Flow(frame, tuple(self._layer(frame, key) for key in jax.random.split(key, self.layers)))

    def _layer(self, frame: Frame, key: Key) -> FlowLayer:
        size, kept = frame.target_size, frame.target_size // 2
        sizes = (kept + frame.input_size, self.hidden, num_raw(self.knots) * (size - kept))
        return FlowLayer(
            batch_norm(size, self.momentum),
            InvertibleLinear(jnp.zeros((size, size)), jnp.zeros(size)),
            SplineCoupling(mlp(sizes, key=key), kept, self.interval),
        )


class Flow(AbstractDensityGHM, AbstractObserver):
    """μ(x′|x, a) as the image of standard normal noise.

    Paper: Fig 18
    """

    frame: Frame
    layers: tuple[FlowLayer, ...]

    @property
    def noise_size(self) -> int:
        return self.frame.target_size

    def push(self, state: State, action: Action, noise: Vector) -> State:
        context, y = self.frame.inputs(state, action), noise
        for layer in reversed(self.layers):
            y = layer.inverse(y, context)
        return self.frame.restore(state, y)

    def pull(self, state: State, action: Action, target: State) -> tuple[Vector, Scalar]:
        """The noise that `push` maps to the target, and log |d noise/d target|."""
        context, z = self.frame.inputs(state, action), self.frame.change(state, target)
        log_det = -self.frame.log_volume
        for layer in self.layers:
            z, grown = layer.forward(z, context)
            log_det = log_det + grown
        return z, log_det

    def log_prob(self, target: State, state: State, action: Action) -> Scalar:
        noise, log_det = self.pull(state, action, target)
        return norm.logpdf(noise).sum() + log_det

    def observe(
        self, state: Float[Array, "B D"], action: Num[Array, "B *A"], target: Float[Array, "B D"]
    ) -> Flow:
        """With running statistics moved towards those of a batch, in all layers at once."""
        contexts = jax.vmap(self.frame.inputs)(state, action)
        ys = jax.vmap(self.frame.change)(state, target)
        layers = []
        for layer in self.layers:
            layers.append(eqx.tree_at(lambda old: old.norm, layer, layer.norm.observe(ys)))
            ys, _ = jax.vmap(layer.forward)(ys, contexts)
        return Flow(self.frame, tuple(layers))


class FlowLayer(eqx.Module):
    """Batch norm, linear map, coupling; `forward` maps data to noise."""

    norm: BatchNorm
    linear: InvertibleLinear
    coupling: SplineCoupling

    def forward(self, y: Vector, context: Context) -> tuple[Vector, Scalar]:
        """z and log |dz/dy|."""
        y, first = self.norm.forward(y)
        y, second = self.linear.forward(y)
        y, third = self.coupling.forward(y, context)
        return y, first + second + third

    def inverse(self, z: Vector, context: Context) -> Vector:
        """The y of a z."""
        return self.norm.inverse(self.linear.inverse(self.coupling.inverse(z, context)))


class InvertibleLinear(eqx.Module):
    """z = R L D U y + bias: L and U triangular with unit diagonals, D positive, R reverses the order.

    `triangles` holds L and U without their diagonals, and log D between them: zeros give R alone.
    """

    triangles: Float[Array, "..."]
    bias: Float[Array, "..."]

    def forward(self, y: Vector) -> tuple[Vector, Scalar]:
        """z and log |det|."""
        lower, diagonal, upper = self._factors()
        one = jnp.eye(len(diagonal))
        return (((lower + one) * diagonal @ (upper + one)) @ y)[::-1] + self.bias, jnp.trace(self.triangles)

    def inverse(self, z: Vector) -> Vector:
        """The y of a z; the inverse matrix is the same for a whole batch, so it is computed once."""
        lower, diagonal, upper = self._factors()
        unlower, unupper = jax.vmap(_unit_lower_inverse)(jnp.stack([lower, upper.T]))
        return (unupper.T / diagonal @ unlower) @ (z - self.bias)[::-1]

    def _factors(self) -> tuple[Array, Array, Array]:
        return (
            jnp.tril(self.triangles, -1),
            jnp.exp(jnp.diagonal(self.triangles)),
            jnp.triu(self.triangles, 1),
        )


def _unit_lower_inverse(strict: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """(I + strict)⁻¹, row by row: on busy cores a sample takes a quarter of the time that triangular solves do."""
    one = jnp.eye(len(strict), dtype=strict.dtype)
    return jax.lax.fori_loop(
        0, len(strict), lambda i, x: x.at[i].set(one[i] - strict[i] @ x), jnp.zeros_like(one)
    )


class SplineCoupling(eqx.Module):
    """The first `kept` coordinates are unchanged; with the context they determine the splines that bend the others."""

    conditioner: MLP
    kept: int = eqx.field(static=True)
    interval: float = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """There is an interval to bend."""
        check_positive("interval", self.interval)

    def forward(self, y: Vector, context: Context) -> tuple[Vector, Scalar]:
        """z and log |dz/dy|."""
        first, second = y[: self.kept], y[self.kept :]
        bent, log_slopes = bend(self._raw(first, context, len(second)), second, self.interval)
        return jnp.concatenate([first, bent]), log_slopes.sum()

    def inverse(self, z: Vector, context: Context) -> Vector:
        """The y of a z."""
        first, second = z[: self.kept], z[self.kept :]
        unbent = unbend(self._raw(first, context, len(second)), second, self.interval)
        return jnp.concatenate([first, unbent])

    def _raw(self, first: Array, context: Context, size: int) -> Float[Array, "r m"]:
        return self.conditioner(jnp.concatenate([first, context])).reshape(-1, size)
