"""Flow matching: a sample is where an ordinary differential equation carries standard normal noise.

    dY/dt = vₜ(Y|x, a),  Y₀ ∼ N(0, I),  x′ = frame.restore(x, Y₁)

vₜ is regressed on the velocities ȧₜ y + ṡₜ ε of the paths from noise to single targets: its minimiser, their
conditional mean, carries the noise to the distribution of the targets. The density follows from the change of
variables, log μ = log N(Y₀) − ∫ div vₜ(Yₜ) dt − log volume. Lipman et al., "Flow matching for generative modeling".

Where a `StateSpec` has rotations, `push` makes them orthonormal afterwards; the density is that before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Num

from ggpi.ghm.abstract import AbstractDensity
from ggpi.ghm.coordinates import Frame, Predict
from ggpi.ghm.paths import PATHS, AbstractPathGHM, Field, PathName, Times, Vectors
from ggpi.ghm.velocity import FieldNetwork, field_network
from ggpi.types import Key, whole

DENSITY_STEPS = 64
"""Midpoint steps of a density."""
EXACT_TRACE = 64
"""Divergences are exact up to this dimension; beyond it they are Hutchinson's estimates."""
PROBES = 16
"""Random signs of an estimated divergence, the same for every point: the density stays a function."""


def _euler(field: Field, y: Array, t: Array, until: Array) -> tuple[Array, Array]:
    there = field(y, t)
    return y + (until - t) * there, there


def _midpoint(field: Field, y: Array, t: Array, until: Array) -> tuple[Array, Array]:
    there, half = field(y, t), (until - t) / 2
    return y + 2 * half * field(y + half * there, t + half), there


def _heun(field: Field, y: Array, t: Array, until: Array) -> tuple[Array, Array]:
    there, span = field(y, t), until - t
    return y + span / 2 * (there + field(y + span * there, until)), there


SolverName = Literal["euler", "midpoint", "heun"]
SOLVERS: dict[str, Callable[[Field, Array, Array, Array], tuple[Array, Array]]] = {
    "euler": _euler,
    "midpoint": _midpoint,
    "heun": _heun,
}
"""One step of each solver, and the field where it starts."""


@dataclass(frozen=True)
class FlowMatchingConfig:
    """The shape of a flow-matching model, and how it is sampled."""

    width: int = 128
    """Units of each layer."""
    depth: int = 3
    """Residual layers of the velocity field."""
    num_steps: int = 10
    """Solver steps of a sample."""
    solver: SolverName = "midpoint"
    """euler takes one evaluation of the field per step; midpoint and heun, of second order, take two."""
    path: Literal["straight", "curved"] = "straight"
    """From noise to a target on a straight line, or on a quarter of an ellipse."""
    predict: Predict = "change"
    """The change of state, or the state itself."""

    def __post_init__(self):
        for name in ("width", "depth", "num_steps"):
            whole(getattr(self, name), name)
        for name, known in (("solver", tuple(SOLVERS)), ("path", ("straight", "curved"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}, got {getattr(self, name)!r}")

    def build(self, frame: Frame, *, key: Key) -> FlowMatching:
        """A model with fresh weights; its samples are standard normal in the frame."""
        network = field_network(frame.target_size, frame.input_size, self.width, self.depth, key=key)
        return FlowMatching(frame, network, self.num_steps, self.path, self.solver)


class FlowMatching(AbstractPathGHM, AbstractDensity):
    """μ(x′|x, a) as standard normal noise that follows a velocity field."""

    frame: Frame
    network: FieldNetwork
    num_steps: int = eqx.field(static=True)
    path: PathName = eqx.field(static=True)
    solver: SolverName = eqx.field(static=True)

    def velocity(
        self, y: Vectors, t: Float[Array, "*n"], state: Float[Array, "..."], action: Num[Array, "..."]
    ) -> Vectors:
        """vₜ(y|x, a) in the frame's coordinates.

        Args:
            y: a point or points, `frame.change` of raw states at t = 1.
            t: a time from 0 to 1, or times that broadcast with the axes of y.
            state: the state x, or states that broadcast with y.
            action: the action a, or actions that broadcast with y.
        """
        return self.field(y, t, self.encode(state, action))

    def aim(self, t: Times, target: Float[Array, "..."], noise: Float[Array, "..."]) -> Float[Array, "..."]:
        return PATHS[self.path].rates(t).mix(target, noise)

    def advance(self, field: Field, y: Vectors, t: Array, until: Array) -> tuple[Vectors, Vectors]:
        return SOLVERS[self.solver](field, y, t, until)

    def log_prob(
        self,
        target: Float[Array | np.ndarray, "D"],
        state: Float[Array | np.ndarray, "D"],
        action: Num[Array | np.ndarray, "*A"],
    ) -> Float[Array, ""]:
        """log μ(target|x, a) in raw units, by 64 midpoint steps; see `EXACT_TRACE`."""
        code, times = (
            self.encode(jnp.asarray(state), jnp.asarray(action)),
            jnp.linspace(1.0, 0.0, DENSITY_STEPS + 1),
        )

        def augmented(values: Array, t: Array) -> Array:
            velocity, divergence = divergence_of(lambda y: self.field(y, t, code), values[:-1])
            return jnp.append(velocity, divergence)

        def step(values: Array, span: tuple[Array, Array]) -> tuple[Array, None]:
            return _midpoint(augmented, values, *span)[0], None

        start = jnp.append(self.frame.change(state, target), 0.0)
        values, _ = jax.lax.scan(step, start, (times[:-1], times[1:]))
        return norm.logpdf(values[:-1]).sum() + values[-1] - self.frame.log_volume


def divergence_of(
    field: Callable[[Array], Array], y: Float[Array, "D"]
) -> tuple[Float[Array, "D"], Float[Array, ""]]:
    """A field at a point, and its divergence there: exact up to `EXACT_TRACE` dimensions, else estimated."""
    value, pull = jax.vjp(field, y)
    if len(y) <= EXACT_TRACE:
        return value, jnp.trace(jax.vmap(lambda row: pull(row)[0])(jnp.eye(len(y))))
    signs = jax.random.rademacher(jax.random.key(0), (PROBES, len(y)), y.dtype)
    return value, jax.vmap(lambda sign: pull(sign)[0] @ sign)(signs).mean()
