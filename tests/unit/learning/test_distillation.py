"""distil: a student that samples as its teacher does, in one pass."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from drifts import (
    DATA,
    DIFFUSION,
    FLOW,
    KEY,
    MEANS,
    POLICIES,
    distance,
    family,
    family_walks,
    leaves,
    trained,
)
from ggpi._jax.batching import stack
from ggpi.ghm.one_pass import OnePass
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.distillation import distil
from ggpi.learning.recipe import Recipe

pytestmark = pytest.mark.slow

SMALL = {"gamma": 0.9, "key": KEY, "batch_size": 32, "steps": 3}
FEW = Recipe(batch_size=16)


def slow(*given):
    return pytest.param(*given, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def shared():
    return ggpi.fit(POLICIES, DATA, alpha="any", model=FLOW, **SMALL)


@pytest.fixture(scope="module")
def student(shared):
    return distil(shared, DATA, steps=2, recipe=FEW, key=KEY)


def test_a_student_is_used_like_any_model(student, tmp_path):
    assert isinstance(student.segment(1, None), OnePass) and student.network is not None
    reward = ggpi.rewards.arrival(lambda x: x[0] > 1)
    agent = ggpi.GGPIAgent(student.with_alpha(0.2).with_gamma(0.7), reward, depth=2, num_samples=4)
    assert agent.act(DATA.state[0], key=KEY).shape == (1,)
    ggpi.save(tmp_path, student)
    loaded = ggpi.load(tmp_path, policies=POLICIES)
    for one, other in zip(leaves(student), leaves(loaded), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "alphas"),
    [(FLOW, (0.5, 0.25)), slow(FLOW, ()), slow(DIFFUSION, ())],
    ids=["flow", "one", "diffusion"],
)
def test_models_that_were_trained_apart_have_students_too(model, alphas):
    """Each learns from its own teacher, which stays as it is."""
    apart = ggpi.fit(POLICIES, DATA, alpha=alphas, model=model, **SMALL)
    before = leaves(apart)
    student = distil(apart, DATA, steps=2, recipe=FEW, key=KEY)
    assert student.network is None and student.horizons == apart.horizons
    assert isinstance(student.segment(1, alphas[-1] if alphas else None), OnePass)
    for one, other in zip(before, leaves(apart), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["any", slow(0.5)])
def test_a_student_may_be_smaller_than_its_teacher(alpha):
    teacher = ggpi.fit(POLICIES, DATA, alpha=alpha, model=FLOW, **SMALL)
    shape = ggpi.FlowMatchingConfig(width=8, depth=1)
    student = distil(teacher, DATA, steps=2, recipe=Recipe(shape, batch_size=16), key=KEY)
    for policy in (0, 1):
        model = student.segment(policy, None)
        assert isinstance(model, OnePass) and model.network.inner.shape == (1, 8)
    assert student.horizons == teacher.horizons and (student.network is None) == (alpha != "any")


def test_a_student_starts_from_the_noise_alone(student):
    """One evaluation of the network: its sample is what the network returns for the noise at time 0."""
    model, noise = student.segment(0, None), jnp.array([0.3])
    state, action = jnp.array([0.1]), jnp.array([0.2])
    code = model.encode(state, action)
    y = model.network(noise, code, model.network.encode_time(jnp.zeros(())))
    np.testing.assert_allclose(model.push(state, action, noise), model.frame.restore(state, y), rtol=1e-5)


@pytest.mark.slow
def test_resumes_bit_for_bit_and_only_with_the_same_teacher(shared, tmp_path):
    recipe = Recipe(batch_size=16, decay="constant")
    whole = distil(shared, DATA, steps=4, recipe=recipe, key=KEY)
    distil(shared, DATA, steps=2, recipe=recipe, out=tmp_path, key=KEY)
    resumed = distil(shared, DATA, steps=4, recipe=recipe, out=tmp_path, key=KEY)
    for one, other in zip(leaves(whole), leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    network = eqx.tree_at(lambda net: net.shifts.biases[0], shared.network, jnp.ones(16))
    other = replace(shared, models=(network,))
    with pytest.raises(ValueError, match="other data, policies or settings"):
        distil(other, DATA, steps=4, recipe=recipe, out=tmp_path, key=KEY)


def test_a_student_has_no_densities(student):
    with pytest.raises(TypeError, match="has no density: use its teacher"):
        student.segment(0, None).log_prob(jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))


def test_a_teacher_needs_a_solver(student):
    with pytest.raises(TypeError, match=r"whose samples need a solver, got OnePass; fit with model="):
        distil(student, DATA, steps=2, key=KEY)
    frame = student.segment(0, None).frame
    vaes = stack([VAEConfig(width=8).build(frame, key=KEY)] * 2)
    vae = replace(student, models=(vaes,))
    with pytest.raises(TypeError, match="got VAE"):
        distil(vae, DATA, steps=2, key=KEY)


@pytest.mark.parametrize("given", ["models", []])
def test_a_teacher_is_models(shared, given):
    """While types are checked at run time, that check comes first."""
    with pytest.raises(TypeError, match=r"load saved ones with ggpi.load|Expected type: .*GHMs"):
        distil(given, DATA, steps=2, key=KEY)
    with pytest.raises(TypeError, match=r"load a saved one with ggpi.load|Expected type: .*GHMs"):
        ggpi.diagnose(shared, None, DATA, teacher=given, key=KEY)


def test_a_student_does_not_go_with_models_of_its_teacher(shared, student):
    mixed = (student.with_alpha(0.2).models[0], shared.with_alpha(0.2).models[1])
    with pytest.raises(ValueError, match="models of two networks"):
        replace(student, alphas=(0.2,), models=mixed)


def test_a_student_of_another_kind(shared):
    with pytest.raises(TypeError, match=r"is a ggpi.FlowMatchingConfig, got a TimedConfig"):
        distil(shared, DATA, steps=2, recipe=Recipe(ggpi.ghm.TimedConfig()), key=KEY)


def test_data_of_another_world(shared):
    wide = ggpi.Transitions(
        *(np.repeat(part, 2, axis=1) for part in (DATA.state, DATA.action, DATA.next_state)),
        *(DATA.terminated, DATA.truncated, DATA.behaviour, DATA.episode, DATA.step),
    )
    with pytest.raises(ValueError, match=r"states of size 1, the data have states of shape \[2\]"):
        distil(shared, wide, steps=2, key=KEY)


def test_diagnosed_beside_its_teacher(shared, student):
    sizes = {"key": KEY, "num_pairs": 2, "num_samples": 8}
    numbers = ggpi.diagnose(student.with_alpha(0.5), None, DATA, teacher=shared, **sizes)
    for about in numbers["left"].values():
        assert {"teacher_energy", "teacher_energy_floor", "energy_of_teacher"} <= set(about)
    same = ggpi.diagnose(shared, None, DATA, teacher=shared, **sizes)["left"]["0.9"]
    assert abs(same["teacher_energy"]) < 0.1, "samples of one model"


def test_a_teacher_of_other_policies_or_horizons(shared, student):
    stacks = tuple(models.stacked() for models in shared.with_alpha(0.5).models)
    apart = replace(shared, alphas=(0.5,), models=stacks)
    with pytest.raises(ValueError, match="give the models that these were distilled from"):
        ggpi.diagnose(student, None, DATA, teacher=apart, key=KEY)
    longer = replace(shared, gamma=0.95, models=(replace(shared.network, largest=0.95).at_horizon(0.95),))
    with pytest.raises(
        ValueError, match=r"of the horizons \[0.95\], those of the teacher of \[0.9\]; give the"
    ):
        ggpi.diagnose(longer, None, DATA, teacher=shared, key=KEY)
    others = replace(apart, policies=POLICIES[::-1])
    with pytest.raises(ValueError, match="those of the teacher of left, right; give the models"):
        ggpi.diagnose(student, None, DATA, teacher=others, key=KEY)


@pytest.mark.slow
def test_a_student_matches_the_truth_at_all_horizons():
    student = distil(
        trained(0.0), family_walks(), steps=1000, recipe=Recipe(batch_size=64, learning_rate=3e-3), key=KEY
    )
    for beta in (0.3, 0.6, 0.8, 0.9):
        for k, mean in enumerate(MEANS):
            found = distance(student.with_gamma(beta).segment(k, None), [mean], beta)
            print(f"{beta} {mean}: {found:.4f}")
            assert found < (0.3 if beta == 0.3 else 0.12)
    assert student.names == [policy.name for policy in family()]
