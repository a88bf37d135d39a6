"""Likelihoods of true futures: of densities, of models with a latent, and of models that can only be sampled."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

from ggpi._jax.batching import stack
from ggpi.data import StateSpec
from ggpi.diagnosis import Truth
from ggpi.diagnosis.likelihood import LatentGHM, likelihood, likelihood_each
from ggpi.ghm.abstract import AbstractDensityGHM
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
STATE, ACTION = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 1))
TRUTH = Truth(STATE, ACTION, STATE[:, None] + RNG.normal(size=(6, 50, 2)))


class Gaussian(AbstractDensityGHM):
    """N(x, scale²)."""

    frame: jax.Array
    scale: jax.Array
    noise_size = 2

    def push(self, state, action, noise):
        return state + self.scale * noise

    def log_prob(self, target, state, action):
        return jax.scipy.stats.norm.logpdf(target, state, self.scale).sum()


class Sampled(eqx.Module):
    def sample(self, state, action, *, key):
        return state


def vae(seed):
    frame = fit_frame(STATE, ACTION, STATE + 1, StateSpec(("x", "y")), None)
    return VAEConfig(width=8, depth=1, kl_weight=7.0).build(frame, key=jax.random.key(seed))


def test_a_density_has_its_mean_score_per_dimension_or_in_all():
    scales = (1.0, 2.0)
    models = [Gaussian(np.zeros(0), np.float32(scale)) for scale in scales]
    wanted = [-stats.norm.logpdf(TRUTH.future, STATE[:, None], scale).sum(axis=-1).mean() for scale in scales]
    assert likelihood(models[1], TRUTH, key=KEY)["nll"] == pytest.approx(wanted[1] / 2, rel=1e-5)
    np.testing.assert_allclose(likelihood_each(stack(models), TRUTH, key=KEY)["nll"], wanted, rtol=1e-5)


@pytest.mark.slow
def test_a_latent_gives_bounds():
    """−ELBO is at KL weight 1 whatever the model's own weight is; more latents make a tighter bound, up to noise."""
    models = [vae(0), vae(1)]
    assert isinstance(models[0], LatentGHM)
    found = likelihood_each(stack(models), TRUTH, num_samples=64, key=KEY)
    assert set(found) == {"nll", "negative_elbo", "kl"} and (found["kl"] > 0).all()
    assert (found["nll"] < found["negative_elbo"]).all()
    own = likelihood(models[0], TRUTH, key=KEY)
    assert own["negative_elbo"] == pytest.approx(found["negative_elbo"][0] / 2, rel=1e-4)
    x, a = (part.astype(np.float32) for part in TRUTH.rows)
    y = TRUTH.future.reshape(-1, 2).astype(np.float32)
    noise = np.zeros((len(x), 1), np.float32)
    _, kl = jax.vmap(models[0]._bound)(x, a, y, noise)
    assert found["kl"][0] == pytest.approx(float(kl.mean()), rel=1e-5)


def test_a_model_that_can_only_be_sampled_has_no_likelihood():
    assert likelihood(Sampled(), TRUTH, key=KEY) == {}
