"""One forward pass per sample, with the time as a latent variable: first when, then where.

    T = 1 + ⌊log u / log β⌋,   x′ = frame.restore(x, g(ε, T|x, a)),   u ∼ U(0, 1), ε ∼ N(0, I)

g(·, T|x, a) is the state after T steps of the policy. The horizon β enters by the distribution of T alone, so the same
network has the models of all horizons, exactly consistent with one another, and where a (x, a) leads to a curve of
states the network need not discover that time runs along it.

g is trained by the energy score, which the true distribution alone minimises and which needs samples, not densities:

    E‖Y − y‖ − ½ E‖Y − Y′‖,   Y, Y′ samples of the model, y the target

in the units of the frame. Rewards are often about positions, which are few of many coordinates: if the state has some,
the score of the positions is added. Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation".
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Int, Num

from ggpi._jax.shapes import Lead, check_shape
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.coordinates import Frame, Predict
from ggpi.ghm.timed_network import TimedNetwork, timed_network
from ggpi.types import Key, whole

TAIL = 1e-3
"""The largest probability of a time beyond the longest one."""
SMALLEST_SQUARE = 1e-8
"""Added to squared distances, whose root has no derivative at 0."""

States = Float[Array, "*b D"]
Times = Int[Array, "*t"]


@dataclass(frozen=True)
class TimedConfig:
    """The shape of a model that draws the time first."""

    width: int = 96
    """Units of each layer."""
    depth: int = 2
    """Residual layers."""
    latent: int = 8
    """Dimensions of the noise ε; where a state after a known time varies in more ways, it needs more."""
    longest: int = 100
    """The longest time; those beyond, which are to have a probability of at most 0.001, are replaced by it."""
    predict: Predict = "change"
    """The change of state, or the state itself."""
    places: float = 1.0
    """Weight of the score of positions beside that of all coordinates."""

    def __post_init__(self):
        for name, least in (("width", 1), ("depth", 1), ("latent", 1), ("longest", 2)):
            whole(getattr(self, name), name, least=least)
        if not 0 <= self.places < float("inf"):
            raise ValueError(f"places is a weight from 0, got {self.places}")

    def build(self, frame: Frame, *, key: Key) -> Timed:
        """A model with fresh weights, at horizon 0."""
        sizes = frame.state_size, frame.input_size, self.width, self.depth, self.latent
        network = timed_network(*sizes, key=key)
        return Timed(frame, network, jnp.zeros(()), self.longest, places=self.places)


class Timed(AbstractGHM):
    """μ(x′|x, a) = Σ_T (1−β) β^{T−1} p(x′|x, a, T)."""

    frame: Frame
    network: TimedNetwork
    beta: Float[Array, "..."]
    """The horizon, which only decides the distribution of T."""
    longest: int = eqx.field(static=True)
    decoder_noise: float = eqx.field(static=True, default=1.0)
    """ε is multiplied by this: 1 gives true samples of the model, 0 one state for each time."""
    places: float = eqx.field(static=True, default=1.0)
    """Weight of the score of positions."""

    @property
    def noise_size(self) -> int:
        return 1 + self.network.noise_size

    @property
    def loss_noise_size(self) -> int:
        return 2 * self.noise_size

    def check_parts(self, lead: Lead) -> None:
        """The horizon is one number, and the arrays fit each other."""
        check_shape("beta", self.beta, lead)
        AbstractGHM.check_parts(self, lead)

    def push(self, state: States, action: Num[Array, "..."], noise: Float[Array, "*b n"]) -> States:
        """A sample x′ ∼ μ(·|x, a); the first number of the noise decides the time."""
        times = geometric_time(ndtr(noise[..., 0]), self.beta, self.longest)
        y = self.after(times, self.encode(state, action), self.decoder_noise * noise[..., 1:])
        return self.frame.restore(state, y)

    def loss(
        self,
        state: Float[Array, "B D"],
        action: Num[Array, "B *A"],
        target: Float[Array, "B D"],
        noise: Float[Array, "B n"],
    ) -> Float[Array, "B"]:
        """The energy score of two samples, for targets at unknown times; not a likelihood."""
        noise = noise.reshape(len(noise), 2, self.noise_size).swapaxes(0, 1)
        times = geometric_time(ndtr(noise[..., 0]), self.beta, self.longest)
        drawn = self.after(times, self.encode(state, action), noise[..., 1:])
        return self.score(drawn, self.frame.change(state, target))

    def encode(self, state: States, action: Num[Array, "..."]) -> Float[Array, "*b m"]:
        """What the network needs of (x, a)."""
        return self.network.encode(self.frame.inputs(state, action))

    def after(
        self, times: Times, code: Float[Array, "..."], noise: Float[Array, "*b n"]
    ) -> Float[Array, "*b D"]:
        """Samples in the frame's coordinates at given times; all axes broadcast with those of the noise."""
        every = jnp.log(jnp.arange(1.0, self.longest + 1)) / jnp.log(float(self.longest))
        return self.network(noise, code, self.network.encode_time(every)[times - 1])

    def score(self, drawn: Float[Array, "m *b D"], y: Float[Array, "*b D"]) -> Float[Array, "*b"]:
        """The energy score of m ≥ 2 samples at targets, all in the frame's coordinates; smaller is better."""
        found = energy_score(drawn, y)
        places = [i for i in range(self.frame.state_size) if i not in self.frame.kept]
        if not places:
            return found
        return found + self.places * energy_score(drawn[..., jnp.array(places)], y[..., jnp.array(places)])

    def at_horizon(self, beta: float) -> Timed:
        """The same network at another horizon."""
        if not 0 <= beta < 1 or beta**self.longest > TAIL:
            raise ValueError(
                f"with times up to {self.longest}, horizons are from 0 to {TAIL ** (1 / self.longest):.3f}, got "
                f"{beta:g}; train with a larger TimedConfig(longest=…)"
            )
        return eqx.tree_at(lambda old: old.beta, self, jnp.full(self.beta.shape, beta, jnp.float32))


def geometric_time(u: Float[Array, "*t"], beta: Float[Array, "..."], longest: int) -> Times:
    """T ∼ Geometric(1−β) on 1, 2, …, `longest` from uniform numbers, by inversion; 1 for β = 0."""
    u = jnp.maximum(u, jnp.finfo(jnp.float32).tiny)
    steps = jnp.floor(jnp.log(u) / jnp.log(jnp.maximum(beta, 1e-30)))
    return 1 + jnp.clip(steps, 0, longest - 1).astype(jnp.int32)


def energy_score(drawn: Float[Array, "m *b k"], target: Float[Array, "*b k"]) -> Float[Array, "*b"]:
    """E‖Y − y‖ − ½ E‖Y − Y′‖ from m ≥ 2 samples, unbiased."""
    count = len(drawn)
    between = sum(_distance(drawn, jnp.roll(drawn, shift, axis=0)).mean(axis=0) for shift in range(1, count))
    return _distance(drawn, target).mean(axis=0) - between / (2 * (count - 1))


def _distance(x: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.sqrt(((x - y) ** 2).sum(axis=-1) + SMALLEST_SQUARE)
