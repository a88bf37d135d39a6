"""The VAE's samples, losses and bounds, computed again in float64 with NumPy."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import ggpi
import ggpi.ghm.vae
from ggpi.data import StateSpec
from ggpi.ghm.coordinates import fit_frame

RNG = np.random.default_rng(0)
STATES, ACTIONS = RNG.normal(size=(40, 3)) * 2 + 1, RNG.uniform(-1, 1, (40, 2))
AHEAD = STATES + RNG.normal(size=(40, 3)) * [0.5, 1, 2] + 2


def model(latent=1, **changes):
    """A small VAE whose encoder is narrow and far from its prior."""
    frame = fit_frame(STATES, ACTIONS, AHEAD, StateSpec(("x", "y", "z")), None)
    vae = ggpi.ghm.vae.VAEConfig(width=6, depth=2, latent=latent, **changes).build(
        frame, key=jax.random.key(0)
    )
    places = jnp.concatenate([jnp.linspace(1.0, 1.5, latent), jnp.linspace(-0.6, 0.4, latent)])
    return eqx.tree_at(
        lambda old: (old.encoder.biases[-1], old.prior.biases[-1], old.context_bias),
        vae,
        (places, jnp.linspace(-0.3, 0.7, 2 * latent), jnp.linspace(-1, 1, 18)),
    )


def pair(row=3):
    return STATES[row], ACTIONS[row], AHEAD[row]


def single(*parts):
    return [jnp.asarray(part, jnp.float32) for part in parts]


class ByHand:
    """Prior, posterior and decoder of a VAE."""

    def __init__(self, vae, x, a):
        self.vae, self.x, frame = vae, x, vae.frame
        self.scale, self.mean = np.asarray(frame.target_scale, float), np.asarray(frame.target_mean, float)
        seen = np.concatenate(
            [(x - frame.state_mean) / frame.state_scale, (a - frame.action_mean) / frame.action_scale]
        )
        contexts = seen @ np.asarray(vae.context, float) + np.asarray(vae.context_bias, float)
        self.for_encoder, self.for_prior, self.for_decoder = np.split(contexts, 3)
        self.prior = self._gaussian(vae.prior, self.for_prior)

    def posterior(self, target):
        y = (target - self.x - self.mean) / self.scale
        return self._gaussian(
            self.vae.encoder, self.for_encoder + y @ np.asarray(self.vae.seen_target, float)
        )

    def decoder(self, z):
        """Mean and deviation of x′ itself."""
        first = self.for_decoder + z @ np.asarray(self.vae.seen_latent, float)
        mean, deviation = self._gaussian(self.vae.decoder, first)
        return self.x + self.mean + self.scale * mean, self.scale * deviation

    def _gaussian(self, network, hidden):
        for weight, bias in zip(network.weights, network.biases, strict=True):
            hidden = hidden / (1 + np.exp(-hidden)) @ np.asarray(weight, float) + np.asarray(bias, float)
        mean, raw = np.split(hidden, 2)
        return mean, np.exp(-5 + 7 / (1 + np.exp(-raw)))


@pytest.mark.parametrize("latent", [1, 2])
def test_samples_decode_a_latent_that_is_drawn_from_the_prior(latent):
    vae, (x, a, _) = model(latent), pair()
    hand = ByHand(vae, x, a)
    assert vae.noise_size == latent + 3 and vae.loss_noise_size == latent
    push = eqx.filter_jit(lambda vae, *given: vae.push(*given))
    for noise in np.random.default_rng(1).normal(size=(4, latent + 3)):
        mean, deviation = hand.decoder(hand.prior[0] + hand.prior[1] * noise[:latent])
        drawn = push(vae, *single(x, a, noise))
        np.testing.assert_allclose(drawn, mean + deviation * noise[latent:], rtol=1e-4)
        quiet = replace(vae, decoder_noise=0.0)
        np.testing.assert_allclose(push(quiet, *single(x, a, noise)), mean, rtol=1e-4)


@pytest.mark.parametrize("latent", [1, 2])
def test_the_divergence_is_that_of_the_posterior_from_the_prior(latent):
    """KL(q ‖ p) = ∫ q log(q/p), by quadrature in each latent dimension; it is what `kl_weight` weighs."""
    vae, (x, a, target) = model(latent), pair()
    hand = ByHand(vae, x, a)
    q, p = (
        [stats.norm(*each) for each in zip(*pair, strict=True)]
        for pair in (hand.posterior(target), hand.prior)
    )

    def divergence(one, other):
        def density(z):
            return one.pdf(z) * (one.logpdf(z) - other.logpdf(z))

        return integrate.quad(density, one.mean() - 12 * one.std(), one.mean() + 12 * one.std())[0]

    wanted = sum(map(divergence, q, p))
    given = single(x, a, target, np.full(latent, 0.3))
    losses = [float(replace(vae, kl_weight=weight).loss(*given)) for weight in (1.0, 3.0)]
    assert (losses[1] - losses[0]) / 2 == pytest.approx(wanted, rel=1e-3)
    assert abs(sum(map(divergence, p, q)) - wanted) > 0.1, "the other direction is another number"


def test_the_loss_is_the_fit_at_a_posterior_latent_plus_the_divergence():
    vae, (x, a, target) = model(kl_weight=0.0), pair()
    hand = ByHand(vae, x, a)
    mean, deviation = hand.posterior(target)
    for noise in (-1.5, 0.4):
        fit = -stats.norm.logpdf(target, *hand.decoder(mean + deviation * noise)).sum()
        loss = float(vae.loss(*single(x, a, target, [noise])))
        assert loss == pytest.approx(fit - np.log(hand.scale).sum(), rel=1e-4)


def test_the_elbo_is_below_the_density_by_a_divergence():
    """E[ELBO] = E[log p(x′|c, z)] − KL(q ‖ p), with quadrature in place of draws, whatever `kl_weight` is."""
    vae, (x, a, target) = model(kl_weight=20.0), pair()
    hand = ByHand(vae, x, a)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    given = single(x, a, target)
    elbo = jax.vmap(lambda noise: vae.elbo(*given, noise[None]))(jnp.asarray(nodes, jnp.float32))
    (m, s), (pm, ps) = hand.posterior(target), hand.prior
    fits = [stats.norm.logpdf(target, *hand.decoder(m + s * node)).sum() for node in nodes]
    divergence = np.log(ps / s) + (s**2 + (m - pm) ** 2) / (2 * ps**2) - 0.5
    wanted = np.dot(weights, fits) / weights.sum() - divergence.sum()
    assert np.dot(weights, elbo) / weights.sum() == pytest.approx(wanted, rel=1e-4)
    density = integrate.quad(
        lambda u: stats.norm.pdf(u) * stats.norm.pdf(target, *hand.decoder(pm + ps * u)).prod(), -10, 10
    )[0]
    assert wanted < np.log(density)


@pytest.mark.slow
def test_one_draw_of_the_tighter_bound_is_a_weight():
    """With one draw it is log p(x′|z) + log p(z) − log q(z); with many it is the logarithm of their mean."""
    vae, (x, a, target), key = model(), pair(), jax.random.key(5)
    hand = ByHand(vae, x, a)
    q, p = (stats.norm(*(part.item() for part in each)) for each in (hand.posterior(target), hand.prior))
    for num in (1, 7):
        noise = np.asarray(jax.random.normal(key, (num, 1)), float)[:, 0]
        z = q.mean() + q.std() * noise
        fits = np.array([stats.norm.logpdf(target, *hand.decoder(np.array([each]))).sum() for each in z])
        wanted = np.log(np.mean(np.exp(fits + p.logpdf(z) - q.logpdf(z))))
        given = single(target, x, a)
        assert float(vae.log_prob_bound(*given, num_samples=num, key=key)) == pytest.approx(wanted, rel=1e-4)
