"""A student beside its teacher: which models are compared, and with what."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.data import StateSpec
from ggpi.diagnosis import Truth, teaching
from ggpi.diagnosis.teaching import beside_teacher, checked_teacher
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import conditioned
from ggpi.ghm.coordinates import fit_frame
from ggpi.policies.linear import linear_policy

KEY = jax.random.key(0)
AB = tuple(linear_policy([[gain, 0.0]], [0.0], 0.3, name) for gain, name in ((1, "a"), (2, "b")))


class Walk(eqx.Module):
    """x + move + noise."""

    move: jax.Array

    def sample(self, state, action, *, key):
        return state + self.move + jax.random.normal(key, state.shape)


def test_distances_are_between_the_student_the_teacher_and_the_truth():
    """Normal clouds of 300 points at 0 (truth), 3 (teacher) and 10 (student), two pairs.

    Far apart clouds have the energy distance 2·|difference| − 4/√π; that of two sets of 300 has a standard deviation
    below .01, and its root stays below .3 with all but a probability of 1e-9.
    """
    state = np.array([[0.0], [50.0]], np.float32)
    future = state[:, None] + np.random.default_rng(0).normal(size=(2, 300, 1))
    truth = Truth(state, np.zeros((2, 1), np.float32), future)
    found = beside_teacher(Walk(jnp.array(10.0)), Walk(jnp.array(3.0)), truth, key=KEY)
    assert found["teacher_energy"] > 2 * found["energy_of_teacher"] > 2
    assert abs(found["teacher_energy_floor"]) < 0.3
    same = beside_teacher(Walk(jnp.array(3.0)), Walk(jnp.array(3.0)), truth, key=KEY)
    assert same["teacher_energy"] != same["teacher_energy_floor"], "two sets of samples"
    assert same["energy_of_teacher"] == found["energy_of_teacher"]


def test_all_samples_have_random_numbers_of_their_own(monkeypatch):
    seen, state = [], np.zeros((2, 1), np.float32)
    truth = Truth(state, state, np.arange(6.0).reshape(2, 3, 1))

    def drawn(model, truth, *, key):
        seen.append((float(model.move), *jax.random.key_data(key).tolist()))
        return truth.future

    monkeypatch.setattr(teaching, "draw_at", drawn)
    beside_teacher(Walk(jnp.array(1.0)), Walk(jnp.array(2.0)), truth, key=KEY)
    assert [move for move, *_ in seen] == [1, 2, 2]
    assert len({tuple(key) for _, *key in seen}) == 3


def models(policies=AB):
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    frame = fit_frame(states, actions, states + 1, StateSpec(("x", "y")), None)
    model = ggpi.FlowMatchingConfig(width=4, depth=1).build(frame, key=KEY)
    network = conditioned(model, jnp.eye(2), 0.9, 2, key=KEY)
    return GHMs(policies, 0.9, (), (network.at_horizon(0.9),))


def test_a_teacher_is_taken_at_the_horizons_of_the_student():
    student = models().with_gamma(0.8).with_alpha((0.5, 0.25))
    assert checked_teacher(student, models()).horizons == student.horizons


def test_a_teacher_with_other_policies_or_horizons():
    student, teacher = models().with_alpha(0.5), models()
    with pytest.raises(
        ValueError, match="of the policies a, b, those of the teacher of b, a; give the models"
    ):
        checked_teacher(student, models(AB[::-1]))
    stacks = tuple(part.stacked() for part in teacher.with_alpha(0.25).models)
    apart = replace(teacher, alphas=(0.25,), models=stacks)
    with pytest.raises(
        ValueError, match=r"of the horizons \[0\.9, 0\.45\], those of the teacher of \[0\.9, 0\.675\]"
    ):
        checked_teacher(student, apart)
    longer = replace(teacher, gamma=0.95, models=(replace(teacher.network, largest=0.95).at_horizon(0.95),))
    with pytest.raises(ValueError, match=r"of the horizons \[0\.95\], those of the teacher of \[0\.9\]"):
        checked_teacher(longer, teacher)
