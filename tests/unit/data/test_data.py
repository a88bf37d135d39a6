"""Transitions: what is rejected, where episodes begin and end, and what comes back from disk."""

from dataclasses import fields, replace
from inspect import unwrap

import numpy as np
import pytest

from ggpi import StateSpec, Transitions
from ggpi.data import (
    read_minari,
    read_npy,
    read_npz,
    within_memory,
    write_minari,
    write_npy,
    write_npz,
)
from ggpi.data.memory import is_mapped
from ggpi.data.transitions import numbered

NAMES = [field.name for field in fields(Transitions)]


def test_names_of_a_state_are_told_apart():
    with pytest.raises(ValueError, match="got x more than once in x, y, x; rename all but one"):
        StateSpec(("x", "y", "x"))


def walk(lengths=(5, 3, 4), discrete=False, seed=0):
    """Whole episodes of random states; every other one terminates."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, length in enumerate(lengths):
        x = (
            rng.integers(9, size=length + 1)
            if discrete
            else rng.normal(size=(length + 1, 3)).astype(np.float32)
        )
        a = rng.integers(4, size=length) if discrete else rng.uniform(-1, 1, (length, 2)).astype(np.float32)
        last = np.arange(length) == length - 1
        ends = (last & (number % 2 == 0), last & (number % 2 == 1))
        rows.append((x[:-1], a, x[1:], *ends, rng.integers(3, size=length), [number] * length, range(length)))
    return Transitions(
        *(np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*rows, strict=True))
    )


def assert_same(one, other):
    for name in NAMES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def untyped(**changes):
    """Changed transitions as users make them: types are checked in tests only."""
    data = object.__new__(Transitions)
    unwrap(Transitions.__init__)(data, **{name: getattr(walk(), name) for name in NAMES} | changes)
    return data


def spoiled(name, place, value):
    values = np.array(getattr(walk(), name))
    values[place] = value
    return replace(walk(), **{name: values})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            spoiled("next_state", (slice(2, 4), 1), np.nan),
            r"next_state: 2 of 36 numbers .* first at \(2, 1\)",
        ),
        (spoiled("action", (0, 0), np.inf), "action: 1 of 24 numbers are not finite"),
        (untyped(action=walk().action[:, 0]), r"action: floats have shape \[N, D\], got \(12,\)"),
        (untyped(action=walk().action.astype(int)), r"action: integers have shape \[N\]"),
        (untyped(action=np.array(["left"] * 12)), "action has type"),
        (
            untyped(terminated=np.zeros(12)),
            r"terminated has type float64 .* booleans \[N\] are wanted",
        ),
        (
            untyped(behaviour=np.zeros((12, 1), int)),
            r"behaviour has .* shape \(12, 1\): integers \[N\]",
        ),
    ],
)
def test_what_is_wrong_is_said(data, message):
    with pytest.raises(ValueError, match=message):
        data.check()


def test_what_is_right_passes_and_what_is_too_little_does_not():
    walk().check(at_least=12)
    walk(discrete=True).check()
    with pytest.raises(ValueError, match="12 transitions are too few, 256 are needed"):
        walk().check(at_least=256)
    with pytest.raises(ValueError, match="one shape"):
        untyped(next_state=walk().next_state[:, :2])
    with pytest.raises(ValueError, match="one length"):
        untyped(step=np.arange(3))


def test_boundaries_of_episodes():
    data = walk((3, 1, 2))
    assert data.episode_starts.tolist() == [True, False, False, True, True, False]
    assert data.episode_ends.tolist() == [False, False, True, True, False, True]
    assert data.is_followed.tolist() == [True, True, False, False, True, False]
    assert replace(data, truncated=np.arange(6) == 0).is_followed.tolist()[:2] == [False, True]
    assert data[[0, 2, 3]].is_followed.tolist() == [False] * 3, "a step is missing"
    assert [len(episode) for episode in data.episodes()] == [3, 1, 2]
    assert not len(data[:0].episode_starts) and not [*data[:0].episodes()] and not len(data[:0].is_followed)
    episode, step = numbered(data.episode_starts)
    np.testing.assert_array_equal(episode, data.episode)
    np.testing.assert_array_equal(step, data.step)


def test_numbers_are_checked_block_by_block(monkeypatch):
    monkeypatch.setattr("ggpi.data.transitions.BLOCK", 2 * 3 * 4)
    walk().check()
    with pytest.raises(ValueError, match=r"state: 3 of 36 numbers are not finite, the first at \(7, 0\)"):
        spoiled("state", (7, slice(None)), np.nan).check()


@pytest.mark.parametrize("discrete", [False, True])
def test_npz_gives_back_what_was_written(tmp_path, discrete):
    data = walk(discrete=discrete)
    write_npz(tmp_path / "walk.npz", data)
    back = read_npz(tmp_path / "walk.npz")
    assert_same(back, data)
    assert back.state.dtype == data.state.dtype
    assert [path.name for path in tmp_path.iterdir()] == ["walk.npz"]


def test_npz_refuses_what_is_damaged_or_foreign(tmp_path):
    path = tmp_path / "a.npz"
    write_npz(path, walk())
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"a\.npz: cannot be read"):
        read_npz(path)
    np.savez(path, state=np.zeros(3))
    with pytest.raises(ValueError, match="it holds state, and is not"):
        read_npz(path)
    np.savez(path, format=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        read_npz(path)
    with pytest.raises(ValueError, match="only booleans, integers and floats"):
        write_npz(path, untyped(behaviour=np.array(["a"] * 12)))
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "none.npz")
    write_npz(path, spoiled("action", (3, 1), np.nan))
    with pytest.raises(ValueError, match=r"a\.npz: cannot be read: action: 1 of 24 .* \(3, 1\)"):
        read_npz(path)
    without = {name: getattr(walk(), name) for name in NAMES if name != "action"}
    np.savez(path, format=np.array("ggpi transitions 1"), **without)
    with pytest.raises(ValueError, match=r"a\.npz: cannot be read: .*action"):
        read_npz(path)


@pytest.mark.parametrize("discrete", [False, True])
def test_directories_are_mapped(tmp_path, discrete):
    data = walk(discrete=discrete)
    write_npy(tmp_path / "walk", data)
    back = read_npy(tmp_path / "walk")
    assert_same(back, data)
    assert is_mapped(back) and not is_mapped(data) and not is_mapped(back[np.arange(3)])
    write_npy(tmp_path / "walk", back[:7])
    assert_same(read_npy(tmp_path / "walk"), data[:7])


def test_directories_that_are_not_whole_are_refused(tmp_path):
    write_npy(tmp_path, walk())
    (tmp_path / "step.npy").write_bytes((tmp_path / "step.npy").read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"step\.npy: cannot be read"):
        read_npy(tmp_path)
    (tmp_path / "about.json").write_text('{"format": "another"}')
    with pytest.raises(
        ValueError, match=r"about\.json: format: is not of format .* found {'format': 'another'}"
    ):
        read_npy(tmp_path)
    (tmp_path / "about.json").unlink()
    with pytest.raises(FileNotFoundError):
        read_npy(tmp_path)


def test_a_subset_that_fits_is_of_whole_episodes(tmp_path):
    data = walk([3 + i % 4 for i in range(200)])
    write_npy(tmp_path, data)
    mapped = read_npy(tmp_path)
    assert not is_mapped(within_memory(mapped, 1.0))
    with pytest.warns(UserWarning, match=r"900 transitions need .* \d+ of 200 episodes drawn at random"):
        part = within_memory(mapped, 0.3 * data.nbytes / 1e9, seed=1)
    assert 0.29 * data.nbytes < part.nbytes <= 0.3 * data.nbytes and not is_mapped(part)
    assert_same(part, data[np.isin(data.episode, part.episode)])
    with pytest.warns(UserWarning):
        other = within_memory(mapped, 0.3 * data.nbytes / 1e9, seed=2)
    assert set(other.episode) != set(part.episode)
    with pytest.raises(ValueError, match="give more memory, or cut episodes"):
        within_memory(data, 100 / 1e9)
    with pytest.raises(ValueError, match="memory is positive, got 0"):
        within_memory(data, 0)


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return pytest.importorskip("minari")


@pytest.mark.parametrize("discrete", [False, True])
def test_minari_gives_back_what_was_written(minari, tmp_path, discrete):
    data = walk(discrete=discrete)
    write_minari(data, "ggpi/walk-v0")
    assert any(tmp_path.rglob("*.hdf5"))
    assert_same(read_minari("ggpi/walk-v0"), data)
    mapped = read_minari("ggpi/walk-v0", mapped=tmp_path / "columns")
    assert is_mapped(mapped)
    assert_same(mapped, data)


def test_minari_datasets_that_are_not_there(minari, tmp_path):
    words = r"no file and no Minari dataset 'ggpi/run-v0': .*{}\. .*minari download ggpi/run-v0"
    with pytest.raises(FileNotFoundError, match=words.format("it holds none")):
        read_minari("ggpi/run-v0")
    write_minari(walk(), "ggpi/walk-v0")
    with pytest.raises(FileNotFoundError, match=words.format("it holds ggpi/walk-v0")):
        read_minari("ggpi/run-v0")


@pytest.mark.filterwarnings("ignore:.*env.*:UserWarning:minari")
def test_minari_datasets_of_others(minari):
    """Dictionaries of observations, no word of who acted, actions out of range."""
    from gymnasium.spaces import Box, Dict
    from minari.data_collector import EpisodeBuffer

    seen = np.arange(8.0).reshape(4, 2)
    episode = EpisodeBuffer(
        id=0,
        observations={"observation": seen, "goal": np.zeros((4, 1))},
        actions=np.array([[0.5], [3.0], [-0.5]]),
        rewards=np.ones(3),
        terminations=np.zeros(3, bool),
        truncations=np.zeros(3, bool),
    )
    minari.create_dataset_from_buffers(
        "others/maze-v0",
        [episode],
        observation_space=Dict(observation=Box(-9, 9, (2,), float), goal=Box(-9, 9, (1,), float)),
        action_space=Box(-1, 1, (1,), float),
        algorithm_name="a",
        author="b",
        author_email="c",
        code_permalink="d",
        description="e",
    )
    with pytest.warns(UserWarning, match="1 of 3 actions were outside"):
        data = read_minari("others/maze-v0", keys=("observation",))
    np.testing.assert_array_equal(data.state, seen[:-1])
    np.testing.assert_array_equal(data.action[:, 0], [0.5, 1.0, -0.5])
    assert data.behaviour.tolist() == [-1, -1, -1] and data.step.tolist() == [0, 1, 2]
    assert data.truncated.tolist() == [False, False, True], "a record that merely stops is truncated"
    assert data.state.dtype == np.float32
    with pytest.raises(
        TypeError, match=r"dataset 'others/maze-v0': .* dictionaries of 'goal' Box.*'observation'"
    ):
        read_minari("others/maze-v0")
    with pytest.raises(KeyError, match=r"dataset 'others/maze-v0': observations have no key 'position'"):
        read_minari("others/maze-v0", keys=("position",))


def test_minari_datasets_with_nans_are_refused_by_name(minari):
    write_minari(spoiled("action", (3, 1), np.nan), "ggpi/nan-v0")
    with pytest.raises(ValueError, match=r"dataset 'ggpi/nan-v0': action: 1 of 24 numbers are not finite"):
        read_minari("ggpi/nan-v0")


def test_minari_refuses_gaps(minari):
    with pytest.raises(ValueError, match="episode 0 has gaps"):
        write_minari(walk()[[0, 2, 3]], "ggpi/gaps-v0")
