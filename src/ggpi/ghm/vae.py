"""Conditional β-VAE: a Gaussian latent z says how far ahead, a Gaussian decoder where that is.

    x′ | x, a       ≈ x + decoder(c, z),  z ∼ prior(c),  c = (x, a)
    −log μ(x′|x, a) ≤ E_{z∼q(·|c,x′)}[−log p(x′|c, z)] + KL(q(·|c, x′) ‖ p(·|c))

The loss weighs the KL term by `kl_weight` (the β of a β-VAE; 20 in the paper, 1 is the bound itself).
Encoder, prior and decoder are MLPs of three hidden layers that all see c: their first layers are one matrix.
All methods take one pair or a batch of them, [D] or [B, D].
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from ggpi._jax.densities import log_normal
from ggpi._jax.networks import MLP, affine, linear, mlp, silu
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.coordinates import Frame, Predict
from ggpi.types import Key

LOG_SCALES = (-5.0, 2.0)
"""Range of the Gaussians' log standard deviations, in the frame's units.

They start in its middle, e^−1.5: a decoder that starts narrow needs its latent, one that starts at 1 may never
learn to use it.
"""

States = Float[Array, "*b D"]
Actions = Num[Array, "..."]
Values = Float[Array, "*b"]


@dataclass(frozen=True)
class VAEConfig:
    """The shape of a VAE and the weight of its KL term."""

    width: int = 128
    """Units of each hidden layer."""
    depth: int = 3
    """Hidden layers of encoder, prior and decoder."""
    latent: int = 1
    """Latent dimensions; the paper found one to be enough for a deterministic environment."""
    kl_weight: float = 1.0
    """Weight of the KL term; the paper's is 20."""
    predict: Predict = "change"
    """The change of state, or the state itself."""

    def __post_init__(self):
        for name, least in (("width", 1), ("depth", 1), ("latent", 1), ("kl_weight", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} is at least {least}, got {getattr(self, name)}")

    def build(self, frame: Frame, *, key: Key) -> VAE:
        """A model with fresh weights."""
        keys = jax.random.split(key, 6)
        hidden = (self.width,) * self.depth
        return VAE(
            frame,
            linear(frame.input_size, 3 * self.width, key=keys[0]),
            jnp.zeros(3 * self.width),
            linear(frame.target_size, self.width, key=keys[1]),
            linear(self.latent, self.width, key=keys[2]),
            mlp((*hidden, 2 * self.latent), key=keys[3]),
            mlp((*hidden, 2 * self.latent), key=keys[4]),
            mlp((*hidden, 2 * frame.target_size), key=keys[5]),
            self.latent,
            self.kl_weight,
        )


class VAE(AbstractGHM):
    """μ(x′|x, a) = ∫ p(x′|c, z) p(z|c) dz with Gaussians p."""

    frame: Frame
    context: Float[Array, "..."]
    context_bias: Float[Array, "..."]
    seen_target: Float[Array, "..."]
    seen_latent: Float[Array, "..."]
    encoder: MLP
    prior: MLP
    decoder: MLP
    latent: int = eqx.field(static=True)
    kl_weight: float = eqx.field(static=True)
    decoder_noise: float = eqx.field(static=True, default=1.0)
    """Samples are mean + this · scale · noise: 1 gives true samples of the model, 0 decoder means."""

    @property
    def noise_size(self) -> int:
        return self.latent + self.frame.target_size

    @property
    def loss_noise_size(self) -> int:
        return self.latent

    def push(self, state: States, action: Actions, noise: Float[Array, "*b n"]) -> States:
        _, for_prior, for_decoder = self._contexts(state, action)
        mean, scale = _gaussian(self.prior(silu(for_prior)))
        y_mean, y_scale = self._decode(for_decoder, mean + scale * noise[..., : self.latent])
        return self.frame.restore(state, y_mean + self.decoder_noise * y_scale * noise[..., self.latent :])

    def loss(self, state: States, action: Actions, target: States, noise: Float[Array, "*b n"]) -> Values:
        fit, divergence = self._bound(state, action, target, noise)
        return fit + self.kl_weight * divergence

    def elbo(self, state: States, action: Actions, target: States, noise: Float[Array, "*b n"]) -> Values:
        """A sample of the lower bound of log μ(target|x, a), in raw units."""
        fit, divergence = self._bound(state, action, target, noise)
        return -(fit + divergence) - self.frame.log_volume

    def divergence(self, state: States, action: Actions, target: States) -> Values:
        """KL(q(·|c, x′) ‖ p(·|c)): the latent's share of the bound."""
        return self._bound(state, action, target, jnp.zeros((*jnp.shape(target)[:-1], self.latent)))[1]

    def log_prob_bound(
        self, target: States, state: States, action: Actions, *, num_samples: int = 64, key: Key
    ) -> Values:
        """log of the mean of p(x′, z|c)/q(z|c, x′) over draws of z: below log μ, and closer with more draws."""
        contexts, y = self._contexts(state, action), self.frame.change(state, target)
        posterior, prior = self._posterior(contexts, y), _gaussian(self.prior(silu(contexts[1])))

        def log_ratio(noise: Float[Array, "z"]) -> Float[Array, "*b"]:
            z = posterior[0] + posterior[1] * noise
            fit = log_normal(y, *self._decode(contexts[2], z))
            return fit + log_normal(z, *prior) - log_normal(z, *posterior)

        ratios = jax.vmap(log_ratio)(jax.random.normal(key, (num_samples, self.latent)))
        return jax.nn.logsumexp(ratios) - jnp.log(num_samples) - self.frame.log_volume

    def _bound(
        self, state: States, action: Actions, target: States, noise: Float[Array, "*b n"]
    ) -> tuple[Values, Values]:
        """−log p(x′|c, z) at a posterior z, and KL(q ‖ p)."""
        contexts, y = self._contexts(state, action), self.frame.change(state, target)
        mean, scale = self._posterior(contexts, y)
        prior_mean, prior_scale = _gaussian(self.prior(silu(contexts[1])))
        fit = -log_normal(y, *self._decode(contexts[2], mean + scale * noise))
        ratio = scale / prior_scale
        distance = (mean - prior_mean) / prior_scale
        return fit, 0.5 * (ratio**2 + distance**2 - 1 - 2 * jnp.log(ratio)).sum(-1)

    def _contexts(self, state: States, action: Actions) -> list[Array]:
        """What (x, a) adds to the first layers of encoder, prior and decoder."""
        seen = self.frame.inputs(state, action)
        parts = zip(jnp.split(self.context, 3, axis=-1), jnp.split(self.context_bias, 3), strict=True)
        return [affine(seen, weight, bias) for weight, bias in parts]

    def _posterior(self, contexts: list[Array], y: Float[Array, "*b d"]) -> tuple[Array, Array]:
        return _gaussian(self.encoder(silu(affine(y, self.seen_target, contexts[0]))))

    def _decode(self, context: Array, z: Array) -> tuple[Array, Array]:
        return _gaussian(self.decoder(silu(affine(z, self.seen_latent, context))))


def _gaussian(outputs: Float[Array, "*b n"]) -> tuple[Float[Array, "*b m"], Float[Array, "*b m"]]:
    """Mean and standard deviation; the latter within its range, smoothly."""
    mean, raw = jnp.split(outputs, 2, axis=-1)
    low, high = LOG_SCALES
    return mean, jnp.exp(low + (high - low) * jax.nn.sigmoid(raw))
