"""Updates of tabular CETD, in a world where nothing is left to chance, and its steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.ghm

KEY = jax.random.key(0)
GAMMA = 0.75
FOLLOWING = np.array([[1, 2], [2, 0], [0, 1]])
AHEAD = np.array([[2, 0], [0, 1], [1, 2]])
"""Where the start model is certain that the future of (x, a) is."""
PI = ggpi.TabularPolicy(np.eye(2)[[0, 1, 1]])
START = 100.0 * np.eye(3)[AHEAD]
CERTAIN = ggpi.TabularMDP(np.eye(3)[FOLLOWING])


def target(x, a, terminated=False):
    """(1−γ) e_x′ + γ e_x″ with x″ the model's future of (x′, π(x′)), or x′ after the end."""
    arrived = FOLLOWING[x, a]
    future = arrived if terminated else AHEAD[arrived, PI.pi[arrived].argmax()]
    return (1 - GAMMA) * np.eye(3)[arrived] + GAMMA * np.eye(3)[future]


def update(x, a, terminated=False):
    return 0.75 * (target(x, a, terminated) - np.eye(3)[AHEAD[x, a]])


def test_one_synchronous_step():
    ghm = ggpi.ghm.cetd(CERTAIN, PI, GAMMA, num_steps=1, logits=START, key=KEY)
    expected = START + [[update(x, a) for a in range(2)] for x in range(3)]
    np.testing.assert_allclose(ghm.logits, expected, atol=1e-4)


@pytest.mark.parametrize("terminated", [False, True])
def test_one_replayed_step_changes_the_pairs_of_its_rows(terminated):
    """Two recorded pairs, 64 rows: each is drawn, else by 2⁻⁶³; no other pair changes.

    In the next states the policy takes other actions than the recorded ones.
    """
    x, a = np.array([0, 1]), np.array([0, 1])
    flags, rows = np.array([terminated] * 2), np.arange(2)
    data = ggpi.Transitions(x, a, FOLLOWING[x, a], flags, ~flags, 0 * rows, rows, 0 * rows)
    ghm = ggpi.ghm.cetd_replay(data, PI, GAMMA, num_steps=1, batch_size=64, logits=START, key=KEY)
    change = np.asarray(ghm.logits) - START
    times = []
    for i, j in zip(x, a, strict=True):
        step = update(i, j, terminated)
        times.append((change[i, j] @ step) / (step @ step))
        np.testing.assert_allclose(change[i, j], times[-1] * step, atol=1e-3)
    assert sum(times) == pytest.approx(64, abs=1e-3) and min(times) > 0.5
    change[x, a] = 0
    np.testing.assert_array_equal(change, 0)


@pytest.mark.slow
def test_recorded_models_are_on_the_way_to_the_last_one():
    path = ggpi.ghm.cetd(CERTAIN, PI, GAMMA, num_steps=6, record_every=2, key=KEY).logits
    assert path.shape == (3, 3, 2, 3)
    for i, steps in enumerate((2, 4, 6)):
        alone = ggpi.ghm.cetd(CERTAIN, PI, GAMMA, num_steps=steps, key=KEY).logits
        np.testing.assert_allclose(path[i], alone, atol=1e-5)


def test_every_step_has_noise_of_its_own():
    """32 pairs that lead everywhere alike: two steps draw the same states with a probability of 16⁻³²."""
    mdp = ggpi.TabularMDP(np.full((16, 2, 16), 1 / 16))
    path = ggpi.ghm.cetd(
        mdp, np.full((16, 2), 0.5), 0.1, num_steps=3, record_every=1, step_size=lambda k: 1e-3, key=KEY
    )
    logits = np.concatenate([np.zeros((1, 16, 2, 16)), path.logits])
    arrived = np.diff(logits, axis=0).argmax(axis=-1)
    assert len(np.unique(arrived.reshape(3, -1), axis=0)) == 3


def test_step_sizes():
    steps = ggpi.ghm.polynomial_steps(2.0, 0.5)
    np.testing.assert_allclose([steps(k) for k in (0, 3, 8)], [2.0, 1.0, 2 / 3])


def test_picks_are_of_the_rows():
    mu = ggpi.ghm.TabularGHM(jnp.asarray(START))
    x, a = np.indices((3, 2))
    np.testing.assert_array_equal(mu.sample(x, a, key=KEY), AHEAD)
