"""fit(…, alpha="any"): one network for all policies and horizons; distil: its samples in one pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_fit_flows import DATA, FLOW, KEY, POLICIES

import ggpi
from ggpi.diagnosis.distances import energy_distance
from ggpi.ghm.conditioned import Conditioned
from ggpi.ghm.one_pass import OnePass
from ggpi.learning.distillation import distil
from ggpi.learning.flow_losses import TD2CFM, TD2DD
from ggpi.learning.horizons import AnyHorizon, spread, spread_horizons
from ggpi.learning.recipe import CPU, any_horizon, changed
from ggpi.policies.family import codes_of, policy_family
from zoo import FEEDBACK, SYSTEM, transitions

OPTIONS = {"gamma": 0.9, "alpha": "any", "key": KEY, "batch_size": 32, "model": FLOW}


@pytest.fixture(scope="module")
def short():
    return ggpi.fit(POLICIES, DATA, steps=3, **OPTIONS)


def test_models_accept_any_alpha_and_smaller_gammas(short):
    assert isinstance(short.network, Conditioned) and short.alphas == ()
    reward, state = ggpi.rewards.arrival(lambda x: x[0] > 1), DATA.state[0]
    for alpha in (0.07, 0.5):
        gsps = ggpi.compositions(2, 2, alpha)
        plan = ggpi.GGPIAgent(short, reward, gsps=gsps, num_samples=4).plan(state, key=KEY)
        assert plan.value.shape == (4,)
        found = ggpi.evaluate_sampled(gsps, short, reward, state, num_samples=4, key=KEY)
        assert np.isfinite(found.mean).all()
    agent = ggpi.GGPIAgent(short.with_alpha(0.3).with_gamma(0.8), reward, depth=2, num_samples=4)
    assert agent.ghms.horizons == pytest.approx((0.8, 0.56))
    with pytest.raises(ValueError, match=r"with_alpha"):
        ggpi.GGPIAgent(short, reward, depth=2)
    with pytest.raises(ValueError, match=r"from 0 to 0\.9, got 0\.95"):
        short.with_gamma(0.95)


def test_saved_and_resumed(short, tmp_path):
    """A run of two steps that continues gives the models of one run of three."""
    constant = changed(CPU, model=FLOW, loss=None, batch_size=32)
    for steps in (2, 3):
        found = ggpi.fit(POLICIES, DATA, steps=steps, out=tmp_path, **OPTIONS)
    assert constant.model == FLOW
    ggpi.save(tmp_path / "copy", found)
    loaded = ggpi.load(tmp_path / "copy", policies=POLICIES)
    one, other = (jax.tree.leaves(ghms.with_alpha(0.5).models) for ghms in (found, loaded))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_default_recipe_becomes_flow_matching():
    recipe = any_horizon(CPU, 0.9)
    assert recipe.model == ggpi.FlowMatchingConfig() and recipe.loss == AnyHorizon(TD2CFM(), 0.9)
    assert any_horizon(changed(CPU, model="diffusion", loss=None), 0.9).loss == AnyHorizon(TD2DD(), 0.9)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alpha": "all"}, ValueError, 'or "any"; got .all'),
        ({"loss": "mc-cfm"}, TypeError, "that bootstraps"),
        ({"model": "vae", "loss": "cemc"}, TypeError, "flow-matching or diffusion network"),
        ({"loss": TD2CFM, "consistency": 1.0}, ValueError, "share from 0 to below 1"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        if "consistency" in options:
            TD2CFM(consistency=options["consistency"])
        ggpi.fit(POLICIES, DATA, **OPTIONS | options)


def test_horizons_are_spread_over_their_range():
    """Each policy has the largest horizon and one of each part of equal size in log(1−β)."""
    from ggpi.learning.fitting import new_training
    from ggpi.learning.preparation import Inputs

    recipe = any_horizon(changed(CPU, model=FLOW, loss=None, batch_size=32), 0.99)
    spec = ggpi.StateSpec(("x",))
    training, _ = new_training(Inputs(POLICIES, DATA, spread(0.99), recipe, spec, KEY))
    betas = np.asarray(spread_horizons(training.problem, 0.99, key=KEY)).reshape(4, 2)
    share = np.log1p(-betas) / np.log1p(-0.99)
    np.testing.assert_allclose(share[0], 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.floor(share[1:] * 3), np.arange(3)[:, None].repeat(2, axis=1))


def test_families_are_seen_by_their_codes():
    family = policy_family(lambda state, z: z * state[:1], [[0.5], [-0.25]], ([-1.0], [1.0]))
    np.testing.assert_allclose([float(p.mode(jnp.ones(2))[0]) for p in family], [0.5, -0.25])
    np.testing.assert_array_equal(codes_of(family), [[0.5], [-0.25]])
    np.testing.assert_array_equal(codes_of(POLICIES), np.eye(2))
    with pytest.raises(ValueError, match=r"one row for each policy, got shape \(2,\)"):
        policy_family(lambda state, z: z, [0.5, 1.0], ([-1.0], [1.0]))
    with pytest.raises(ValueError, match="2 codes, got 1 names"):
        policy_family(lambda state, z: z, [[0.5], [1.0]], ([-1.0], [1.0]), names=["one"])


def test_a_student_needs_a_teacher_with_a_solver(short):
    student = distil(short, DATA, steps=2, key=KEY)
    assert isinstance(student.network.model, OnePass)
    with pytest.raises(TypeError, match="got OnePass"):
        distil(student, DATA, steps=2, key=KEY)
    assert not hasattr(student.segment(0, None), "log_prob")


@pytest.mark.slow
@pytest.mark.parametrize("consistency", [0.0, 0.25])
def test_all_horizons_of_one_network_match_the_truth(consistency):
    """Energy distances at horizons that were never trained on as such, for the network and for its student."""
    ghms = ggpi.fit(
        [FEEDBACK],
        transitions(),
        gamma=0.9,
        alpha="any",
        key=KEY,
        model=ggpi.FlowMatchingConfig(width=48, depth=2),
        loss=TD2CFM(consistency=consistency, ema_decay=0.95),
        learning_rate=5e-3,
        steps=1000,
        batch_size=128,
    )
    student = distil(ghms, transitions(), steps=500, key=KEY)
    for beta in (0.3, 0.6, 0.9):
        for models in (ghms, student):
            assert distance(models, beta) < 0.1


def distance(ghms, beta, n=500):
    """Energy distance to the truth, in units of its spread, mean over three pairs."""
    model, rng = jax.tree.map(lambda leaf: leaf[0], ghms.network.models(beta)), np.random.default_rng(0)
    found = []
    for row in (10, 500, 2000):
        state, action = transitions().state[row], transitions().action[row]
        keys = jax.random.split(KEY, n)
        drawn = np.asarray(jax.vmap(lambda key: model.sample(state, action, key=key))(keys))  # noqa: B023
        true = SYSTEM.sample_future(state, action, beta, n, rng)
        found.append(energy_distance(drawn / true.std(0), true / true.std(0)))
    return float(np.mean(found))
