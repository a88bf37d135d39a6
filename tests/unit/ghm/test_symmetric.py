"""One model of the ant as four: turned states lead to turned samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("mujoco")

from ggpi._jax.batching import part_of
from ggpi.envs.ant import SPEC
from ggpi.envs.ant.symmetry import back, forth, rename_legs, turn_world
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.symmetric import DirectedGHM, four_models
from ggpi.ghm.timed import TimedConfig
from ggpi.storage.objects import load, save
from ggpi.storage.pretrained import pretrained

RNG = np.random.default_rng(0)


def upright(count):
    """States of ants whose bodies have orthonormal axes."""
    states = RNG.normal(size=(count, 35)).astype(np.float32)
    forward, up = states[:, 3:6], states[:, 6:9]
    forward /= np.linalg.norm(forward, axis=1, keepdims=True)
    up -= (up * forward).sum(axis=1, keepdims=True) * forward
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    return states


STATES, TARGETS, ACTIONS = upright(40), upright(40), RNG.normal(size=(40, 8)).astype(np.float32)
FRAME = fit_frame(STATES, ACTIONS, STATES + 1, SPEC, None)
BASE = TimedConfig(width=8, depth=1, longest=60).build(FRAME, key=jax.random.key(0)).at_horizon(0.7)
MODELS = four_models(BASE)
NOISE = RNG.normal(size=(40, BASE.noise_size)).astype(np.float32)
pushed = jax.jit(lambda model, *rows: jax.vmap(model.push)(*rows))
turned = jax.vmap(turn_world, in_axes=(0, None))
renamed = jax.vmap(rename_legs, in_axes=(0, None))


@pytest.mark.parametrize("direction", range(4))
def test_turning_the_world_turns_the_samples(direction):
    ahead = pushed(part_of(MODELS, 0), STATES, ACTIONS, NOISE)
    found = pushed(part_of(MODELS, direction), turned(STATES, direction), ACTIONS, NOISE)
    np.testing.assert_allclose(found, turned(ahead, direction), atol=1e-4)


@pytest.mark.parametrize("legs", range(1, 4))
def test_renaming_legs_renames_those_of_the_samples(legs):
    model = part_of(MODELS, 1)
    ahead = pushed(model, STATES, ACTIONS, NOISE)
    actions = jax.vmap(forth, in_axes=(0, None))(ACTIONS, legs)
    found = pushed(model, renamed(STATES, legs), actions, NOISE)
    np.testing.assert_allclose(found, renamed(ahead, legs), atol=1e-4)
    np.testing.assert_array_equal(jax.vmap(back, in_axes=(0, None))(actions, legs), ACTIONS)


def test_a_body_that_faces_its_way_needs_no_symmetry():
    facing = STATES[np.abs(STATES[:, 3]) > 0.9]
    facing = np.where(facing[:, 3:4] > 0, facing, renamed(facing, 2))
    rows = facing, ACTIONS[: len(facing)], NOISE[: len(facing)]
    np.testing.assert_allclose(pushed(part_of(MODELS, 0), *rows), pushed(BASE, *rows), atol=1e-5)


@pytest.mark.slow
def test_losses_are_those_of_turned_pairs():
    noise = jnp.asarray(RNG.normal(size=(40, BASE.loss_noise_size)))
    states, actions, targets = map(jnp.asarray, (STATES, ACTIONS, TARGETS))
    ahead = part_of(MODELS, 0).loss(states, actions, targets, noise)
    found = part_of(MODELS, 3).loss(turned(states, 3), actions, turned(targets, 3), noise)
    np.testing.assert_allclose(found, ahead, atol=1e-4)


def test_models_follow_their_policies():
    """Policy k in a turned state acts as policy 0 in the state itself, so models and policies fit together."""
    policies = pretrained("ant-policies")
    acted = [jax.vmap(policy.mode)(turned(STATES, k)) for k, policy in enumerate(policies)]
    ahead = pushed(part_of(MODELS, 0), STATES, acted[0], NOISE)
    for k in (1, 2, 3):
        found = pushed(part_of(MODELS, k), turned(STATES, k), acted[k], NOISE)
        np.testing.assert_allclose(found, turned(ahead, k), atol=1e-4)


def test_models_are_saved_and_directions_checked(tmp_path):
    save(tmp_path / "one", part_of(MODELS, 2))
    kept = load(tmp_path / "one")
    assert isinstance(kept, DirectedGHM) and int(kept.direction) == 2
    rows = STATES, ACTIONS, NOISE
    np.testing.assert_array_equal(pushed(kept, *rows), pushed(part_of(MODELS, 2), *rows))
    wrong = DirectedGHM(FRAME, BASE, jnp.array(4))
    with pytest.raises(ValueError, match="direction is one of 0 to 3"):
        wrong.check_parts(())
