"""What a record tells, compared with walks along its rows that share no code with the library."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.data import Transitions
from ggpi.learning.targets import (
    FRESH,
    draw_rows,
    follow,
    followed_steps,
    geometric,
    n_step_dataset,
    trajectory_dataset,
    why_loose,
)

KEY = jax.random.key(0)


def numbered(behaviour, episode, terminated=(), truncated=()):
    """Transitions in which row i leads from 10 i to 10 i + 1, so that a state tells its row."""
    rows = np.arange(len(behaviour))
    step = np.concatenate([np.arange(count) for count in np.unique(episode, return_counts=True)[1]])
    vectors = [(10.0 * rows + moved).astype(np.float32)[:, None] for moved in (0, 1)]
    flags = [np.isin(rows, ends) for ends in (terminated, truncated)]
    return Transitions(
        vectors[0], rows.astype(np.float32)[:, None], vectors[1], *flags, np.array(behaviour), episode, step
    )


def random_record(seed):
    """Eight episodes of up to nine steps; policies change at random, half of the episodes terminate."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 10, 8)
    episode, behaviour = np.repeat(np.arange(8), counts), rng.integers(2, size=counts.sum())
    last = np.cumsum(counts) - 1
    return numbered(behaviour, episode, last[::2], last[1::2])


def walk(data, row, policy, longest, time):
    """Where a walk of at most `longest` steps leaves the record, and whether `time` is still ahead."""
    taken = 1
    while taken < min(longest, time) and not (data.terminated[row] or data.truncated[row]):
        if row + 1 == len(data) or data.episode[row + 1] != data.episode[row]:
            break
        if data.step[row + 1] != data.step[row] + 1 or data.behaviour[row + 1] != policy:
            break
        row, taken = row + 1, taken + 1
    return data.next_state[row, 0], taken < time and not data.terminated[row]


@pytest.mark.parametrize("n_step", [1, 3, 100])
def test_records_are_followed_step_by_step(n_step):
    """Stops at other policies, ends of episodes and after n steps; only an end of the world is stayed in."""
    data, betas = random_record(0), jnp.array([0.9, 0.9, 0.5, 0.5])
    dataset = n_step_dataset(data, 2, n_step)
    rows = draw_rows(dataset, 2, 400, key=KEY)
    reached, beyond = map(np.asarray, follow(dataset, rows, betas, key=jax.random.key(1)))
    rows, times = map(np.asarray, (rows, geometric(betas[:, None], rows.shape, key=jax.random.key(1))))
    for m in range(4):
        for b, row in enumerate(rows[m]):
            wanted = walk(data, row, m % 2, n_step, times[m, b])
            assert (reached[m, b, 0], beyond[m, b]) == wanted
    assert beyond.any() and (~beyond).any() and not beyond[data.terminated[rows]].any()


@pytest.mark.parametrize("policy", [0, 1])
def test_followed_steps_are_counted_row_by_row(policy):
    for seed in range(5):
        data = random_record(seed)
        gap = replace(data, step=data.step + (np.arange(len(data)) >= 7))  # a row is missing before row 7
        for given in (data, gap):
            lengths = followed_steps(given, policy)
            for row, length in enumerate(lengths):
                assert walk(given, row, policy, 100, 100)[0] == given.next_state[row + length - 1, 0]


def test_fresh_rows_are_the_first_of_a_turn_not_of_an_episode():
    """Policy 1 takes over after ten steps: its first four rows are drawn as often as all others together."""
    data = numbered([0] * 10 + [1] * 10, np.zeros(20, int), truncated=[19])
    dataset, every = n_step_dataset(data, 2, 20), [*range(20)]
    assert FRESH == 4 and dataset.num_starts.tolist() == [40, 80]
    assert dataset.starts[1].tolist() == [*every, *[*range(10, 20)] * 2, *[10, 11, 12, 13] * 10]
    assert dataset.starts[0].tolist()[:40] == [*every, *[*range(10)] * 2], "it was there from the start"


def test_turns_of_one_step_are_fresh_and_later_episodes_begin_anew():
    """The age of a row is counted from the last change of policy, or from the start of its episode."""
    behaviour = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    data = numbered(behaviour, np.repeat([0, 1], 8), truncated=[7, 15])
    fresh = {2, 3, 4, 5, 0, 8, 9, 10, 11}
    assert set(n_step_dataset(data, 2, 20).starts[0].tolist()[2 * 16 :]) == fresh


def test_rows_of_each_policy_are_drawn_from_all_of_its_starts():
    """The models come horizon by horizon: 0, 1, 0, 1. A row that is missed has probability below 16 e⁻¹²⁵."""
    data = numbered([0] * 8 + [1] * 8, np.repeat([0, 1], 8), truncated=[7, 15])
    dataset = trajectory_dataset(data, 2, [0.2])
    rows = np.asarray(draw_rows(dataset, 2, 1000, key=KEY))
    starts = [set(dataset.starts[k].tolist()) for k in (0, 1)]
    assert [set(row.tolist()) for row in rows] == [*starts, *starts]
    assert starts[0] and starts[0] <= set(range(8)) and starts[1] <= set(range(8, 16))
    assert len({tuple(row) for row in rows}) == 4, "every model has draws of its own"


def test_padding_of_starts_is_never_drawn():
    """Policy 0 has five starts, policy 1 has twelve: were padding drawn, the first rows would come up more often.

    Each share of 20,000 draws is within 0.025 of 1/5 but for a probability of 2 e⁻²⁵ (Hoeffding).
    """
    data = numbered([0] * 7 + [1] * 14, np.repeat([0, 1], [7, 14]), truncated=[6, 20])
    dataset = trajectory_dataset(data, 2, [0.1])
    assert dataset.num_starts.tolist() == [5, 12] and dataset.starts.shape == (2, 12)
    rows = np.asarray(draw_rows(dataset, 1, 20_000, key=KEY))[0]
    np.testing.assert_allclose(np.bincount(rows, minlength=21)[:5] / 20_000, 1 / 5, atol=0.025)


def test_cemc_starts_have_a_long_record_or_an_end_ahead():
    """β = 0.1: a thousandth of T lies beyond 3 steps. Rows that terminate are known for ever."""
    data = numbered([0] * 5 + [1, 0, 0, 0], np.repeat([0, 1], [5, 4]), terminated=[8], truncated=[4])
    dataset = trajectory_dataset(data, 1, [0.1])
    assert dataset.starts[0, : dataset.num_starts[0]].tolist() == [0, 1, 2, 6, 7, 8]
    assert dataset.length.tolist() == [[5, 4, 3, 2, 1, 4, 3, 2, 1]]


def test_the_longest_horizon_says_how_long_a_record_must_be():
    """log(0.001)/log(β) is 3 steps for β = 0.1 and 10 for β = 0.5; β = 0 needs one."""
    data = numbered([0] * 12, np.zeros(12, int), truncated=[11])
    assert [trajectory_dataset(data, 1, [beta]).num_starts.item() for beta in (0.0, 0.1, 0.5)] == [12, 10, 3]
    assert trajectory_dataset(data, 1, [0.5, 0.1, 0.0]).num_starts.item() == 3


@pytest.mark.parametrize("beta", [0.3, 0.9, 0.99])
def test_times_are_geometric(beta):
    """P(T > t) = βᵗ: each share of 200,000 draws is off by 0.008 with probability below 2 e⁻²⁵ (Hoeffding)."""
    times = np.asarray(geometric(jnp.float32(beta), (200_000,), key=KEY))
    assert times.min() == 1
    for t in (1, 2, 3, 10, 50):
        assert abs((times > t).mean() - beta**t) < 0.008


def test_why_nothing_can_be_followed():
    data = numbered([3] * 4, np.zeros(4, int), truncated=[3])
    assert "policies [3]" in why_loose(data)
    assert "behaviour is −1" in why_loose(replace(data, behaviour=np.full(4, -1)))
    assert "loose" in why_loose(replace(data, episode=np.arange(4)))
