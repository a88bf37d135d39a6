"""Each loss of a path model has the right minimiser after one backup; known wrong variants do not."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import one_backup
from ggpi._jax.batching import stack
from ggpi.data import Transitions
from ggpi.learning.flow_losses import TD2CFM, TD2DD, TDCFM, TDDD, CoupledTDCFM
from ggpi.learning.losses import Problem
from ggpi.learning.shares import compose, resample, spread_times, truncated_geometric
from ggpi.learning.targets import n_step_dataset
from ggpi.policies.bank import PolicyBank
from one_backup import EXPECTED, FAR, NUM, SHIFT, bootstrapped, diffusion, flow, mass_below, times

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("loss", "path"),
    [
        (TDCFM(), "straight"),
        (CoupledTDCFM(), "straight"),
        (TD2CFM(), "straight"),
        (TDCFM(), "curved"),
        (TD2CFM(), "curved"),
    ],
)
def test_one_backup_has_the_right_mass(loss, path, record_property):
    """.1075; regression over bins and 100 Euler steps are within .005."""
    model = flow(path=path)
    found = mass_below(model, bootstrapped(loss, model))
    record_property("mass", float(found))
    assert found == pytest.approx(EXPECTED, abs=0.005)


@pytest.mark.parametrize("loss", [TDDD(), TD2DD()])
def test_one_backup_of_a_diffusion_has_the_right_mass(loss, record_property):
    model = diffusion()
    found = mass_below(model, bootstrapped(dataclasses.replace(loss, steps_per_target=1), model))
    record_property("mass", float(found))
    assert found == pytest.approx(EXPECTED, abs=0.005)


def test_straight_lines_with_the_targets_velocity_are_wrong():
    """Points of the coupled loss with the velocity of μ̄ lose more than a quarter of the mass."""
    model = flow()
    y, _ = bootstrapped(CoupledTDCFM(), model)
    found = mass_below(model, (y, model.field(y, times()[:, None], None)))
    assert found < 0.08


def displaced():
    """A model of changes whose μ̄ lies as before, seen from x: δ = (x′ − x)/σ = 2 is added to its coordinates."""
    model = flow(mean=FAR[0] - SHIFT, from_state=1.0)
    state = jnp.full((NUM, 1), 3.0)
    return model, state, state + SHIFT * model.frame.target_scale


@pytest.mark.parametrize("loss", [TDCFM(), CoupledTDCFM(), TD2CFM()])
def test_points_are_moved_from_the_next_state_to_this_one(loss):
    model, state, reached = displaced()
    points = loss.moved(model, state, reached, reached, times(), key=jax.random.key(2))
    assert mass_below(model, points) == pytest.approx(EXPECTED, abs=0.005)


def test_td2_that_adds_displacements_naively_is_wrong():
    """Y = ψ + δ with v unchanged: the source is moved too, and the mass is wrong by more than .03."""
    model, state, reached = displaced()
    y, v = TD2CFM().points(model, model.encode(reached, reached), times(), key=jax.random.key(2))
    found = mass_below(model, (y + model.frame.displacement(state, reached), v))
    assert abs(found - EXPECTED) > 0.03


def test_displacements_are_differences_of_changes():
    frame = one_backup.frame(1.0)
    x, other, target = (jnp.array([[value]]) for value in (3.0, -1.5, 0.25))
    expected = frame.change(x, target) - frame.change(other, target)
    np.testing.assert_allclose(frame.displacement(x, other), expected, rtol=1e-6)
    np.testing.assert_array_equal(one_backup.frame(0.0).displacement(x, other), [[0.0]])


def chain(terminated, length=3, num_episodes=40):
    """Episodes 0 → 1 → 2 → 3 that end by termination or truncation."""
    step = np.tile(np.arange(length), num_episodes)
    state, last = step[:, None].astype(np.float32), step == length - 1
    none = np.zeros(len(step), bool)
    ends = (last, none) if terminated else (none, last)
    episode = np.repeat(np.arange(num_episodes), length)
    return Transitions(state, np.zeros_like(state), state + 1, *ends, 0 * step, episode, step)


def problem_of(data, n_step, betas=(0.8,)):
    return Problem(n_step_dataset(data, 1, n_step), PolicyBank([Still()]), jnp.array(betas))


class Still(eqx.Module):
    def sample(self, state, *, key):
        return jnp.zeros(1)


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("n_step", [1, 2, 20])
def test_shares_add_up_to_the_target_of_an_n_step_backup(n_step, terminated):
    """Over many draws, each state has the mass of X_T with T ≤ L, and what lies beyond L is bootstrapped there."""
    problem = problem_of(chain(terminated), n_step)
    direct, ahead = compose(problem, 30_000, 10_000, key=KEY)
    beta, expected = 0.8, np.zeros((2, 4))
    for start in range(3):
        steps = min(3 - start, n_step)
        for time in range(1, steps + 1):
            expected[0, start + time] += (1 - beta) * beta ** (time - 1) / 3
        ends = terminated and start + steps == 3
        expected[0 if ends else 1, start + steps] += beta**steps / 3
    for share, masses in zip((direct, ahead), expected, strict=True):
        states = np.asarray(share.reached[0, :, 0]).astype(int)
        found = np.bincount(states, np.asarray(share.weight[0], float), minlength=4)
        # 30,000 rows with weights ≤ 1: five standard deviations are at most 5 · .5/√10,000
        np.testing.assert_allclose(found, masses, atol=0.025)
    total = float(direct.weight.sum() + ahead.weight.sum())
    assert total == pytest.approx(1.0, abs=0.025)


def test_one_step_shares_are_exact():
    direct, ahead = compose(problem_of(chain(False), 1, (0.9, 0.0)), 48, 16, key=KEY)
    np.testing.assert_allclose(direct.weight.sum(axis=1), [0.1, 1.0], rtol=1e-5)
    np.testing.assert_allclose(ahead.weight.sum(axis=1), [0.9, 0.0], rtol=1e-5)


def test_without_bootstrapped_rows_everything_is_direct():
    direct, ahead = compose(problem_of(chain(False), 20), 64, 0, key=KEY)
    np.testing.assert_allclose(direct.weight, np.full((1, 64), 1 / 64))
    assert ahead.rows.shape == (1, 0)


def test_resampling_is_systematic():
    """Places with an expected count of 2, 0, 1.5 and .5 of four."""
    chosen = np.asarray(resample(jnp.tile(jnp.array([[4.0, 0.0, 3.0, 1.0]]), (200, 1)), 4, key=KEY))
    counts = np.stack([(chosen == place).sum(axis=1) for place in range(4)], axis=1)
    assert (counts[:, 0] == 2).all() and (counts[:, 1] == 0).all()
    assert set(counts[:, 2]) == {1, 2} and set(counts[:, 3]) == {0, 1}
    assert counts[:, 3].mean() == pytest.approx(0.5, abs=0.2)  # 5.6 standard deviations


def test_times_below_a_tail():
    """Given T ≤ 2 with β = ½, T = 1 has probability 2/3."""
    drawn = np.asarray(truncated_geometric(jnp.array([[0.5]]), jnp.full((1, 20_000), 0.25), key=KEY))
    assert set(drawn.ravel()) == {1, 2}
    assert np.mean(drawn == 1) == pytest.approx(2 / 3, abs=0.02)  # 6 standard deviations


def test_times_are_spread_over_all_of_the_path():
    drawn = np.stack([spread_times(4, key=key) for key in jax.random.split(KEY, 50)])
    np.testing.assert_array_equal(np.floor(4 * drawn), np.tile(np.arange(4), (50, 1)))
    np.testing.assert_allclose(np.diff(drawn, axis=1), 0.25, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_step": 0}, "n_step is at least 1, got 0"),
        ({"targets_per_solve": 0}, "targets_per_solve is at least 1"),
        ({"steps_per_target": 0}, "steps_per_target is at least 1"),
        ({"ema_decay": 1.0}, "ema_decay is from 0 to below 1"),
        ({"bootstrapped": 1.0}, "bootstrapped is a share between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        TD2CFM(**changes)


def test_the_slow_copy_follows_and_keeps_the_frame():
    slow, models = flow(1.0), flow(2.0)
    loss = TD2CFM(ema_decay=0.99)
    assert loss.slow_copy(slow, models, 10_000).network == pytest.approx(1.01)
    assert loss.slow_copy(slow, models, 0).network == pytest.approx(1.9)
    for one, other in zip(
        *map(jax.tree.leaves, (slow.frame, loss.slow_copy(slow, models, 7).frame)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_the_coupled_loss_uses_the_noise_of_its_samples():
    """The flow to N(1.5, 1) moves noise by 1.5, so that coupled lines have this velocity everywhere."""
    model = flow()
    _, v = CoupledTDCFM().points(model, jnp.zeros((100, 1)), times(), key=KEY)
    np.testing.assert_allclose(v, np.full((len(times()), 100, 1), 1.5), atol=0.01)
    _, fresh = TDCFM().points(model, jnp.zeros((100, 1)), times(), key=KEY)
    assert np.std(fresh) > 1


@pytest.mark.parametrize("fine", [1, 5])
def test_td2_learns_the_field_on_the_way_of_samples(fine):
    """The flow of N(m, 1) leads from ε to t m + ε √(t² + (1−t)²); every target is there, with the field of its time."""
    model, t = flow(), jnp.array([0.05, 0.3, 0.55, 0.8])
    y, v = TD2CFM(steps_per_target=fine).points(model, jnp.zeros((200, 1)), t, key=KEY)
    np.testing.assert_allclose(v, model.field(y, t[:, None], None), rtol=1e-5, atol=1e-5)
    noise = np.asarray(y[0] - t[0] * FAR[0]) / np.sqrt(t[0] ** 2 + (1 - t[0]) ** 2)
    expected = t[:, None, None] * FAR[0] + noise * np.sqrt(t**2 + (1 - t) ** 2)[:, None, None]
    np.testing.assert_allclose(y, expected, atol=0.05 if fine == 1 else 0.005)


@pytest.mark.slow
def test_no_gradient_reaches_the_targets():
    problem = problem_of(chain(False), 1)
    models, slow = (stack([flow(mean)]) for mean in (0.0, 1.0))

    def total(models, slow):
        return TD2CFM(n_step=1).batch(models, slow, problem, 64, key=KEY)[0].sum()

    assert np.abs(eqx.filter_grad(total)(models, slow).network).max() > 0.1
    np.testing.assert_array_equal(eqx.filter_grad(lambda slow: total(models, slow))(slow).network, [[0.0]])
