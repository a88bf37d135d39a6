"""Steps of training, one at a time: slow copies, the learning rate, and what each step is made from."""

import itertools
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.data import Transitions
from ggpi.ghm.abstract import AbstractDensityGHM, AbstractObserver
from ggpi.learning.loop import Training, initial_state, run_chunk, score
from ggpi.learning.losses import CETD, LL2TD, Problem
from ggpi.learning.recipe import Recipe
from ggpi.policies.bank import PolicyBank

KEY = jax.random.key(0)


class Unit(eqx.Module):
    """A frame that changes nothing."""

    log_volume: jax.Array


class Point(AbstractDensityGHM, AbstractObserver):
    """N(x + centre, 1), which counts the batches that it has seen."""

    frame: Any
    centre: jax.Array
    seen: jax.Array

    @property
    def noise_size(self):
        return 1

    def push(self, state, action, noise):
        return state + jax.lax.stop_gradient(self.centre) + noise

    def log_prob(self, target, state, action):
        return jax.scipy.stats.norm.logpdf(target, state + self.centre).sum()

    def observe(self, state, action, target):
        return Point(self.frame, self.centre, self.seen + 1)


class Still(eqx.Module):
    def sample(self, state, *, key):
        return jnp.zeros(1)


def walks():
    """Loose transitions by about 3."""
    rng, rows = np.random.default_rng(0), np.arange(60)
    state = rng.normal(size=(60, 1)).astype(np.float32)
    moved = state + rng.normal(3, 1, (60, 1)).astype(np.float32)
    none = np.zeros(60, bool)
    return Transitions(state, 0 * state, moved, none, ~none, 0 * rows, rows, 0 * rows)


def prepared(**changes):
    given = {"loss": CETD(n_step=1), "steps": 8, "batch_size": 16, "learning_rate": 0.1} | changes
    recipe = Recipe(**given)
    betas = [0.8, 0.0]
    problem = Problem(recipe.loss.dataset(walks(), 1, betas), PolicyBank([Still()]), jnp.array(betas))
    models = Point(Unit(jnp.zeros(2)), jnp.array([[-1.0], [1.0]]), jnp.zeros(2))
    return Training(problem, problem, KEY, recipe), initial_state(models, recipe)


def trained(training, state, count, first=0):
    """The states before and after each step, and the losses."""
    states, losses = [jax.tree.map(np.array, state)], []
    for i in range(first, first + count):
        state, loss = run_chunk(training, state, first=i, count=1)
        states.append(jax.tree.map(np.array, state))
        losses.append(np.array(loss)[0])
    return states, np.stack(losses)


def test_a_running_mean_moves_slowly_towards_the_weights():
    """slow ← 0.9 slow + 0.1 new, after every step."""
    states, _ = trained(*prepared(loss=CETD(n_step=1, ema_decay=0.9)), 3)
    np.testing.assert_array_equal(states[0].slow.centre, states[0].models.centre)
    for before, after in itertools.pairwise(states):
        assert (before.models.centre != after.models.centre).all()
        wanted = 0.9 * before.slow.centre + 0.1 * after.models.centre
        np.testing.assert_allclose(after.slow.centre, wanted, rtol=1e-6)


@pytest.mark.parametrize("loss", [CETD(n_step=1, copy_every=3), LL2TD(copy_every=3)])
def test_copies_are_made_every_so_many_steps(loss):
    """After steps 3 and 6 the slow copy is the model of that moment, in between it stays as it was."""
    states, _ = trained(*prepared(loss=loss), 7)
    for done, (before, after) in enumerate(itertools.pairwise(states), 1):
        wanted = after.models if done in (3, 6) else before.slow
        np.testing.assert_array_equal(after.slow.centre, wanted.centre)
        assert (after.models.centre != before.models.centre).all()


def test_without_a_slow_copy_there_is_none():
    states, _ = trained(*prepared(), 1)
    assert states[0].slow is None and states[1].slow is None


def test_targets_of_a_step_come_from_the_slow_copy():
    """Adam's first step is ± the learning rate, towards the targets: those of a copy that is 1000 away."""
    training, state = prepared(loss=CETD(n_step=1, copy_every=100))
    for away in (1000.0, -1000.0):
        slow = eqx.tree_at(lambda old: old.centre, state.slow, jnp.full((2, 1), away))
        given = jax.tree.map(jnp.array, eqx.tree_at(lambda old: old.slow, state, slow))
        after, _ = run_chunk(training, given, first=0, count=1)
        moved = after.models.centre[0, 0] - state.models.centre[0, 0]
        assert moved == pytest.approx(0.1 * np.sign(away), rel=1e-4)


def test_the_learning_rate_falls_to_zero_or_stays():
    """Adam on a far target moves by the learning rate: 0.1 · (1 − i/8) at step i of 8.

    0.8 of the rows go there, ± 0.4% in so large a batch: the bound is eight deviations away.
    """
    for decay, rates in (("linear", 0.1 * (1 - np.arange(8) / 8)), ("constant", np.full(8, 0.1))):
        training, state = prepared(decay=decay, loss=CETD(n_step=1, copy_every=100), batch_size=2**14)
        slow = eqx.tree_at(lambda old: old.centre, state.slow, jnp.full((2, 1), 1e6))
        states, _ = trained(training, eqx.tree_at(lambda old: old.slow, state, slow), 8)
        moved = np.diff([each.models.centre[0, 0] for each in states])
        np.testing.assert_allclose(moved, rates, rtol=0.02, atol=1e-4)


def test_every_step_has_draws_of_its_own_and_chunks_are_steps():
    training, state = prepared(learning_rate=0.0)
    states, losses = trained(training, jax.tree.map(jnp.array, state), 4)
    assert len(np.unique(losses[:, 0])) == 4, "the models stay, the batches change"
    assert states[-1].models.seen.tolist() == [4, 4], "models see every batch once"
    _, again = trained(training, jax.tree.map(jnp.array, state), 2, first=2)
    np.testing.assert_array_equal(again, losses[2:])
    whole, at_once = run_chunk(training, jax.tree.map(jnp.array, state), first=0, count=4)
    np.testing.assert_allclose(at_once, losses, rtol=1e-5)
    assert whole.models.seen.tolist() == [4, 4]


def test_models_are_trained_apart():
    """The β = 0 model learns as it would if the other one were somewhere else."""
    training, state = prepared()
    moved = eqx.tree_at(lambda old: old.models.centre, state, jnp.array([[50.0], [1.0]]))
    ends = [trained(training, jax.tree.map(jnp.array, given), 3)[0][-1] for given in (state, moved)]
    assert ends[0].models.centre[1] == pytest.approx(ends[1].models.centre[1], rel=1e-6)
    assert ends[0].models.centre[1, 0] > 1.2, "three steps of 0.1 towards 3"


def test_scores_are_repeatable_and_of_the_record_they_are_given():
    training, state = prepared()
    scores = [np.asarray(score(training, state.models)) for _ in range(2)]
    np.testing.assert_array_equal(*scores)
    data = training.held_out.data
    far = replace(data, next_state=data.next_state + 100)
    elsewhere = eqx.tree_at(lambda old: old.held_out.data, training, far)
    assert (np.asarray(score(elsewhere, state.models)) > scores[0] + 100).all()
    better = eqx.tree_at(lambda old: old.centre, state.models, jnp.array([[3.0], [3.0]]))
    assert float(score(training, better)[1]) < scores[0][1] - 1
