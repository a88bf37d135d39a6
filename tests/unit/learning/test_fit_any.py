"""fit(…, alpha="any"): one network for all policies and horizons, on a line where futures are known.

a ∼ N(±.5, .1²),  x′ = x + a:   X_T = x + a + Σ_{t<T} aₜ,  T ∼ Geometric(1−β)
"""

import jax
import numpy as np
import pytest

import ggpi
from drifts import DATA, DIFFUSION, FLOW, KEY, MEANS, POLICIES, distance, family, leaves, trained
from ggpi.ghm.flow_matching import FlowMatching
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.flow_losses import TD2CFM, TD2DD
from ggpi.learning.horizons import AnyHorizon, spread, spread_horizons
from ggpi.learning.log import TrainingLog
from ggpi.learning.preparation import Inputs, new_training
from ggpi.learning.recipe import CPU, Recipe, any_horizon, changed
from ggpi.planning import SequentialHalving, plan

pytestmark = pytest.mark.slow

OPTIONS = {"gamma": 0.9, "alpha": "any", "key": KEY, "batch_size": 32, "model": FLOW}
REWARD = ggpi.rewards.arrival(lambda x: x[0] > 1)


@pytest.fixture(scope="module")
def short():
    return ggpi.fit(POLICIES, DATA, steps=3, **OPTIONS)


def test_segments_are_ordinary_models(short):
    assert short.network is not None and short.alphas == () and short.horizons == (0.9,)
    assert isinstance(short.with_alpha(0.3).segment(1, 0.3), FlowMatching)


def test_agents_accept_any_alpha_and_smaller_gammas(short):
    for alpha in (0.07, 0.5):
        gsps = ggpi.compositions(2, 2, alpha)
        agent = ggpi.GGPIAgent(short, REWARD, gsps=gsps, num_samples=4)
        assert agent.plan(DATA.state[0], key=KEY).value.shape == (4,)
        found = ggpi.evaluate_sampled(gsps, short, REWARD, DATA.state[0], num_samples=4, key=KEY)
        assert np.isfinite(found.mean).all()
    agent = ggpi.GGPIAgent(short.with_alpha(0.3).with_gamma(0.8), REWARD, depth=2, num_samples=4)
    assert agent.ghms.horizons == pytest.approx((0.8, 0.56))
    assert agent.act(DATA.state[:3], key=KEY).shape == (3, 1)


def test_planners_accept_any_alpha(short):
    planner = SequentialHalving(200, ggpi.compositions(2, 2, 0.3))
    found = jax.jit(lambda state, key: plan(planner, short, REWARD, state, key=key))(DATA.state[0], KEY)
    assert np.isfinite(float(found.value))
    agent = ggpi.GGPIAgent(short, REWARD, gsps=ggpi.compositions(2, 2, 0.3), planner=planner)
    assert agent.ghms.alphas == (0.3,)


def test_evaluation_is_a_pure_function(short):
    """The models of an α are constants of a program that is being traced."""
    gsps = ggpi.compositions(2, 2, 0.3)

    def value(state, key):
        return ggpi.evaluate_sampled(gsps, short, REWARD, state, num_samples=4, key=key).mean

    np.testing.assert_allclose(jax.jit(value)(DATA.state[0], KEY), value(DATA.state[0], KEY), rtol=1e-4)


def test_diagnosed_like_any_models(short):
    numbers = ggpi.diagnose(short.with_alpha(0.5), None, DATA, key=KEY, num_pairs=2, num_samples=8)
    assert set(numbers["right"]) == {"0.9", "0.45"} and "consistency" in numbers["right"]["0.45"]


@pytest.mark.slow
@pytest.mark.parametrize("loss", [TD2CFM(), TD2DD()], ids=["flow", "diffusion"])
def test_a_run_that_was_cut_short_resumes_bit_for_bit(loss, tmp_path, monkeypatch):
    model = FLOW if isinstance(loss, TD2CFM) else DIFFUSION
    recipe = Recipe(model, loss, steps=10, batch_size=32, chunk=5)
    given = {"gamma": 0.9, "alpha": "any", "consistency": 0.25, "recipe": recipe, "key": KEY}
    monkeypatch.setattr(TrainingLog, "EVERY", 0.0)
    whole = ggpi.fit(POLICIES, DATA, **given)
    write = TrainingLog.write

    def dies(log, step, *rest):
        write(log, step, *rest)
        if step == 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TrainingLog, "write", dies)
        ggpi.fit(POLICIES, DATA, out=tmp_path, **given)
    resumed = ggpi.fit(POLICIES, DATA, out=tmp_path, **given)
    saved = ggpi.load(tmp_path / "models", policies=POLICIES)
    for found in (resumed, saved):
        for one, other in zip(leaves(whole.with_alpha(0.4)), leaves(found.with_alpha(0.4)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_default_recipe_becomes_flow_matching():
    recipe = any_horizon(CPU, 0.9)
    assert recipe.model == ggpi.FlowMatchingConfig() and recipe.loss == AnyHorizon(TD2CFM(), 0.9)
    assert any_horizon(changed(CPU, model="diffusion", loss=None), 0.9).loss == AnyHorizon(TD2DD(), 0.9)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alpha": "all"}, ValueError, 'or "any"; got .all'),
        ({"gamma": 0.0}, ValueError, r"between 0 and 1, got 0\.0"),
        ({"loss": "mc-cfm"}, TypeError, "that bootstraps"),
        ({"model": VAEConfig(width=8), "loss": "cemc"}, TypeError, "flow-matching or diffusion network"),
        ({"model": "vae"}, TypeError, 'got model="vae"; leave it out'),
        ({"alpha": 0.5, "consistency": 0.25}, ValueError, 'consistency .* alpha="any"'),
        ({"consistency": 1.0}, ValueError, "share from 0 to below 1"),
        ({"consistency": -0.1}, ValueError, "share from 0 to below 1"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        ggpi.fit(POLICIES, DATA, **OPTIONS | options)


def test_agents_need_an_alpha(short):
    with pytest.raises(ValueError, match=r"with_alpha"):
        ggpi.GGPIAgent(short, REWARD, depth=2)


def test_horizons_are_spread_over_their_range():
    """Each policy has the largest horizon and one of each part of equal size in log(1−β)."""
    recipe = any_horizon(changed(CPU, model=FLOW, loss=None, batch_size=32), 0.99)
    training, _ = new_training(Inputs(POLICIES, DATA, spread(0.99), recipe, ggpi.StateSpec(("x",)), KEY))
    betas = np.asarray(spread_horizons(training.problem, 0.99, key=KEY)).reshape(4, 2)
    share = np.log1p(-betas) / np.log1p(-0.99)
    np.testing.assert_allclose(share[0], 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.floor(share[1:] * 3), np.arange(3)[:, None].repeat(2, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("consistency", [0.0, 0.25])
def test_all_horizons_and_policies_of_one_network_match_the_truth(consistency):
    """At horizons that were never drawn, between 0 and the largest one; distances were up to .08 and .03.

    The shortest one is mostly a single point, while coordinates are in units of the longest.
    """
    ghms = trained(consistency)
    for beta in (0.3, 0.6, 0.8, 0.9):
        for k, mean in enumerate(MEANS):
            found = distance(ghms.with_gamma(beta).segment(k, None), [mean], beta)
            print(f"{consistency} {beta} {mean}: {found:.4f}")
            assert found < (0.3 if beta == 0.3 else 0.12)


@pytest.mark.slow
def test_without_its_code_a_network_is_the_mixture_of_its_policies():
    for beta in (0.6, 0.85):
        found = distance(trained(0.0).with_gamma(beta).of_any_policy(), MEANS, beta)
        print(f"{beta}: {found:.4f}")
        assert found < 0.12


@pytest.mark.slow
def test_members_of_the_family_that_were_not_trained():
    """A code between those that were trained has futures between theirs."""
    ghms = trained(0.0).with_policies(family(np.array([[0.4]], np.float32))).with_gamma(0.8)
    found = distance(ghms.segment(0, None), [[0.4]], 0.8)
    print(f"{found:.4f}")
    assert found < 0.15
