"""fit with flow-matching and diffusion models: defaults, what it refuses, resuming, terminal states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae
from drifts import DATA, DIFFUSION, FLOW, KEY, POLICIES, leaves
from ggpi.ghm.diffusion import Diffusion
from ggpi.ghm.flow_matching import FlowMatching
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import MCCFM, TD2CFM, TD2DD, TDCFM, TDDD, NextStateCFM
from ggpi.learning.log import TrainingLog
from ggpi.learning.losses import CEMC, CETD, LL2TD
from ggpi.learning.recipe import CPU, Recipe, changed


class Still(eqx.Module):
    """Always the same action."""

    action: jax.Array

    def sample(self, state, *, key):
        return self.action


def small(**changes):
    given = {"gamma": 0.9, "alpha": 1 / 9, "steps": 10, "batch_size": 32, "key": KEY} | changes
    return fit(POLICIES, given.pop("data", DATA), **given)


def test_a_model_brings_its_loss_unless_one_is_given():
    assert changed(CPU, model="flow-matching", loss=None) == Recipe(ggpi.FlowMatchingConfig(), TD2CFM())
    assert changed(CPU, model="diffusion", loss=None) == Recipe(ggpi.DiffusionConfig(), TD2DD())
    assert changed(CPU, model="flow-matching", loss="mc-cfm").loss == MCCFM()
    own = Recipe(FLOW, TDCFM(n_step=3))
    assert changed(own, model=ggpi.FlowMatchingConfig(), loss=None).loss == own.loss


@pytest.mark.parametrize(
    ("model", "loss", "message"),
    [
        (
            ggpi.ghm.vae.VAEConfig(width=16),
            TD2CFM(),
            "TD2CFM regresses velocities, which a VAE does not have",
        ),
        (ggpi.ghm.vae.VAEConfig(width=16), LL2TD(), "LL2TD needs densities, which a VAE does not have"),
        (DIFFUSION, LL2TD(), "LL2TD needs densities, which a Diffusion does not have"),
        (DIFFUSION, TD2CFM(), "TD2CFM regresses velocities, which a Diffusion does not have"),
        (FLOW, TDDD(), "TDDD regresses noise, which a FlowMatching does not have"),
        (FLOW, CETD(), "CETD needs likelihoods, .* use the loss td2-cfm"),
        (DIFFUSION, CEMC(), "CEMC needs likelihoods, .* use the loss mc-cfm"),
    ],
)
def test_a_loss_that_a_model_cannot_support(model, loss, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        small(model=model, loss=loss, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("model", "kind"), [(FLOW, FlowMatching), (DIFFUSION, Diffusion)])
def test_a_run_that_was_cut_short_resumes_bit_for_bit(model, kind, tmp_path, monkeypatch):
    recipe = Recipe(model, TD2CFM() if kind is FlowMatching else TD2DD(), steps=10, batch_size=32, chunk=5)
    monkeypatch.setattr(TrainingLog, "EVERY", 0.0)
    whole = fit(POLICIES, DATA, gamma=0.9, alpha=(), recipe=recipe, key=KEY)
    write = TrainingLog.write

    def dies(log, step, *rest):
        write(log, step, *rest)
        if step == 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TrainingLog, "write", dies)
        fit(POLICIES, DATA, gamma=0.9, alpha=(), recipe=recipe, key=KEY, out=tmp_path)
    resumed = fit(POLICIES, DATA, gamma=0.9, alpha=(), recipe=recipe, key=KEY, out=tmp_path)
    assert isinstance(resumed.segment(0, None), kind)
    for one, other, saved in zip(*map(leaves, (whole, resumed, ggpi.load(tmp_path / "models"))), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, saved)


def test_a_loss_that_is_not_finite_names_step_and_checkpoint(tmp_path):
    recipe = Recipe(FLOW, TD2CFM(), steps=10, batch_size=32, chunk=5, learning_rate=1e30)
    with pytest.raises(
        FloatingPointError, match=r"at step \d+; last good checkpoint: .*checkpoint \(step \d+\)"
    ):
        fit(POLICIES, DATA, gamma=0.9, alpha=(), recipe=recipe, key=KEY, out=tmp_path)


@pytest.mark.slow
def test_discrete_actions_bring_a_model_of_the_next_state():
    rng = np.random.default_rng(0)
    state = rng.normal(size=(200, 1)).astype(np.float32)
    action, rows, none = rng.integers(2, size=200), np.arange(200), np.zeros(200, bool)
    data = ggpi.Transitions(
        state, action, state + action[:, None].astype(np.float32), none, none, 0 * rows, rows, 0 * rows
    )
    policy = Still(jnp.zeros((), jnp.int32))
    ghms = ggpi.fit(
        [policy],
        data,
        gamma=0.5,
        alpha=(),
        model=FLOW,
        loss=TD2CFM(n_step=1),
        steps=5,
        batch_size=32,
        key=KEY,
    )
    assert isinstance(ghms.one_step, FlowMatching)
    assert NextStateCFM().dataset(data, 1, [0.0]).num_starts == 200


@pytest.mark.slow
@pytest.mark.parametrize("loss", [TDCFM(n_step=1), TD2CFM(n_step=1), TD2CFM()], ids=str)
def test_an_absorbing_end_takes_all_the_mass(loss):
    """On 0 → 1 → 2, which terminates, μ(·|0) has 1−β at 1 and β at 2, and μ(·|1) has all at 2."""
    step = np.tile(np.arange(2), 200)
    state, last = step[:, None].astype(np.float32), step == 1
    episode = np.repeat(np.arange(200), 2)
    data = ggpi.Transitions(
        state, np.zeros_like(state), state + 1, last, last & False, 0 * step, episode, step
    )
    model = ggpi.FlowMatchingConfig(width=32, depth=2, predict="state")
    ghms = fit(
        [Still(jnp.zeros(1))],
        data,
        gamma=0.75,
        alpha=(),
        model=model,
        loss=loss,
        steps=500,
        batch_size=64,
        learning_rate=5e-3,
        key=KEY,
    )
    found, keys = ghms.segment(0, None), jax.random.split(jax.random.key(1), 2000)
    for x, expected in ((0.0, 0.75), (1.0, 1.0)):
        drawn = np.asarray(jax.vmap(lambda k, x=x: found.sample(jnp.array([x]), jnp.zeros(1), key=k))(keys))
        assert np.mean(drawn > 1.5) == pytest.approx(expected, abs=0.1)
        assert np.mean(np.abs(drawn - np.round(drawn)) < 0.25) > 0.9
