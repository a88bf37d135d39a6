"""The student's network: one evaluation per sample, in arrays of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.data import StateSpec
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.one_pass import student_of

KEY = jax.random.key(0)
STATE, ACTION, NOISE = jnp.array([0.3, -1.0]), jnp.array([0.5]), jnp.array([0.7, -0.2])


@pytest.fixture(scope="module")
def teacher():
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    frame = fit_frame(states, actions, states + rng.normal(1, 1, (50, 2)), StateSpec(("x", "y")), None)
    model = ggpi.FlowMatchingConfig(width=8, depth=1, num_steps=6).build(frame, key=KEY)
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(KEY, leaf.shape), model)


def test_a_sample_is_the_field_at_time_0_taken_to_the_end(teacher):
    student = student_of(teacher)
    code = student.encode(STATE, ACTION)
    end = NOISE + student.field(NOISE, jnp.zeros(()), code)
    np.testing.assert_allclose(
        student.push(STATE, ACTION, NOISE), student.frame.restore(STATE, end), rtol=1e-5
    )
    assert np.abs(teacher.push(STATE, ACTION, NOISE) - student.push(STATE, ACTION, NOISE)).max() > 1e-3


def test_the_field_is_a_velocity(teacher):
    """Targets less noise; half of a step goes half of the way."""
    student = student_of(teacher)
    np.testing.assert_array_equal(student.aim(jnp.array(0.3), STATE, NOISE), STATE - NOISE)
    y, there = student.advance(lambda y, t: y + t, NOISE, jnp.array(0.25), jnp.array(0.75))
    np.testing.assert_allclose(there, NOISE + 0.25, rtol=1e-6)
    np.testing.assert_allclose(y, NOISE + 0.5 * there, rtol=1e-6)


def test_a_student_has_arrays_of_its_own(teacher):
    """Training donates them."""
    own, taught = jax.tree.leaves((teacher.frame, teacher.network)), jax.tree.leaves(student_of(teacher))
    assert len(own) == len(taught)
    for one, other in zip(own, taught, strict=True):
        assert one is not other
        np.testing.assert_array_equal(one, other)


def test_a_student_has_no_density(teacher):
    with pytest.raises(TypeError, match="has no density: use its teacher"):
        student_of(teacher).log_prob(STATE, STATE, ACTION)
