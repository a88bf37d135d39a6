"""Flat files of others: what makes an episode, what is left out, and what is refused by name."""

import numpy as np
import pytest

from ggpi.data import read_flat, read_npy
from ggpi.data.memory import is_mapped


def d4rl(lengths=(5, 3, 4), seed=0):
    """Columns as D4RL has them; every other episode terminates."""
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    last = np.zeros(total, bool)
    last[np.cumsum(lengths) - 1] = True
    terminal = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
    walks = [rng.normal(size=(length + 1, 3)) for length in lengths]
    return {
        "observations": np.concatenate([walk[:-1] for walk in walks]),
        "next_observations": np.concatenate([walk[1:] for walk in walks]),
        "actions": rng.uniform(-1, 1, (total, 2)),
        "rewards": np.full(total, np.nan),
        "terminals": last & terminal,
        "timeouts": last & ~terminal,
    }


def without(columns, *names):
    return {name: values for name, values in columns.items() if name not in names}


def as_npz(path, columns):
    np.savez(path / "file.npz", **columns)
    return path / "file.npz"


def as_directory(path, columns):
    (path / "file").mkdir(exist_ok=True)
    for name, values in columns.items():
        np.save(path / "file" / f"{name}.npy", values)
    return path / "file"


def as_hdf5(path, columns):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "file.hdf5", "w") as file:
        for name, values in columns.items():
            file.create_dataset(name, data=values, compression="gzip" if values.ndim > 1 else None)
    return path / "file.hdf5"


@pytest.fixture(params=[as_npz, as_directory, as_hdf5])
def written(request, tmp_path):
    return lambda columns: request.param(tmp_path, columns)


@pytest.fixture(params=[None, 48])
def blocks(request, monkeypatch):
    """Read at once, and some rows at a time."""
    if request.param:
        monkeypatch.setattr("ggpi.data.transitions.BLOCK", request.param)


def test_trajectories_with_next_states(written, blocks):
    columns = d4rl()
    data = read_flat(written(columns))
    data.check()
    np.testing.assert_array_equal(data.state, columns["observations"].astype(np.float32))
    np.testing.assert_array_equal(data.next_state, columns["next_observations"].astype(np.float32))
    np.testing.assert_array_equal(data.action, columns["actions"].astype(np.float32))
    np.testing.assert_array_equal(data.terminated, columns["terminals"])
    np.testing.assert_array_equal(data.truncated, columns["timeouts"])
    assert data.episode.tolist() == [0] * 5 + [1] * 3 + [2] * 4
    assert data.step.tolist() == [*range(5), *range(3), *range(4)]
    assert set(data.behaviour) == {-1} and data.state.dtype == np.float32


def test_shuffled_rows_are_loose_transitions(written, blocks):
    order = np.random.default_rng(3).permutation(40)
    columns = {name: values[order] for name, values in d4rl((20, 20)).items()}
    data = read_flat(written(columns))
    following = np.append(order[1:] == order[:-1] + 1, False) & ~columns["terminals"] & ~columns["timeouts"]
    assert len(set(data.episode)) == 40 - following.sum() and following.sum() < 5
    assert (data.truncated | data.terminated | following).all(), "where nothing follows, the record stops"
    assert (data.step[~np.append(False, following[:-1])] == 0).all()
    np.testing.assert_array_equal(data.terminated, columns["terminals"])


def test_trajectories_without_next_states(written, blocks):
    """The last row of each episode has no next state; an end of the world that is lost so is told."""
    columns = without(d4rl(), "next_observations")
    with pytest.warns(UserWarning, match="2 terminal transitions are dropped"):
        data = read_flat(written(columns))
    x = columns["observations"].astype(np.float32)
    kept = [0, 1, 2, 3, 5, 6, 8, 9, 10]
    np.testing.assert_array_equal(data.state, x[kept])
    np.testing.assert_array_equal(data.next_state, x[np.array(kept) + 1])
    np.testing.assert_array_equal(data.action, columns["actions"][kept].astype(np.float32))
    assert data.step.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert np.flatnonzero(data.truncated).tolist() == [3, 5, 8] and not data.terminated.any()


def test_ends_that_are_not_the_end_of_the_world(written):
    """As OGBench's files have it: one mark, for where records were cut."""
    columns = d4rl()
    ends = (columns["terminals"] | columns["timeouts"]).astype(np.float32)
    columns = without(columns, "next_observations", "timeouts") | {"terminals": ends}
    data = read_flat(written(columns), names={"truncated": "terminals", "terminated": None})
    assert len(data) == 9 and not data.terminated.any() and data.truncated.sum() == 3


def test_a_file_of_ogbench_has_the_transitions_that_ogbench_reads(tmp_path):
    ogbench, columns = pytest.importorskip("ogbench"), d4rl()
    ends = (columns["terminals"] | columns["timeouts"]).astype(np.float32)
    stored = without(columns, "next_observations", "timeouts", "rewards") | {"terminals": ends}
    np.savez(tmp_path / "maze.npz", **stored)
    theirs = ogbench.load_dataset(tmp_path / "maze.npz")
    data = read_flat(tmp_path / "maze.npz", names={"truncated": "terminals", "terminated": None})
    np.testing.assert_array_equal(data.state, theirs["observations"])
    np.testing.assert_array_equal(data.action, theirs["actions"])
    np.testing.assert_array_equal(data.next_state, theirs["next_observations"])
    np.testing.assert_array_equal(data.truncated, theirs["terminals"])


def test_other_names_who_acted_and_numbered_episodes(tmp_path):
    columns = d4rl()
    path = as_hdf5(
        tmp_path,
        {
            "data/obs": columns["observations"],
            "data/act": np.arange(12)[:, None] % 4,
            "who": np.arange(12) % 3,
            "episode": np.repeat([7, 4, 9], [5, 3, 4]),
        },
    )
    names = {"state": "data/obs", "action": "data/act", "behaviour": "who", "episode": "episode"}
    data = read_flat(path, names=names)
    assert data.action.tolist() == [0, 1, 2, 3, 1, 2, 0, 1, 2] and data.action.dtype == np.int32
    assert data.behaviour.tolist() == [0, 1, 2, 0, 2, 0, 2, 0, 1]
    assert data.step.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]


def test_columns_can_be_mapped(written, blocks, tmp_path):
    columns = d4rl()
    plain, mapped = read_flat(written(columns)), read_flat(written(columns), mapped=tmp_path / "mapped")
    assert is_mapped(mapped)
    for name in ("state", "action", "next_state", "terminated", "truncated", "behaviour", "episode", "step"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(plain, name))
        np.testing.assert_array_equal(getattr(read_npy(tmp_path / "mapped"), name), getattr(plain, name))


def spoiled(name, place, value):
    columns = d4rl()
    columns[name][place] = value
    return columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            without(d4rl(), "actions"),
            r"file.* has no 'actions' for action; it holds next_observations, observations",
        ),
        (without(d4rl(), "observations"), r"file.* has no 'observations' for state"),
        ({"x": np.zeros(3)}, r"names={'state': …}\) says what"),
        (
            spoiled("actions", (3, 1), np.nan),
            r"file.*: action has numbers that are not finite, the first in row 3",
        ),
        (spoiled("next_observations", (8, 0), np.inf), r"file.*: next_state has numbers .* in row 8"),
        (
            d4rl() | {"actions": np.zeros((11, 2))},
            r"file.*: action has shape \(11, 2\) .* but state has 12 rows",
        ),
        (
            d4rl() | {"actions": np.zeros(12)},
            r"file.*: action has shape \(12,\) and type float64: vectors \[N, D\]",
        ),
        (
            d4rl() | {"observations": np.zeros((12, 8, 8, 3), np.uint8)},
            r"file.*: state has shape \(12, 8, 8, 3\)",
        ),
        (
            d4rl() | {"next_observations": np.zeros((12, 2))},
            r"file.*: next_state has shape .* state has shape \(12, 3\)",
        ),
        (d4rl() | {"terminals": np.full(12, 2)}, r"file.*: terminated is true or false, got .*2"),
        (
            d4rl() | {"terminals": np.zeros((12, 2))},
            r"file.*: terminated has shape .* one number for each row",
        ),
        (
            d4rl() | {"observations": np.zeros((0, 3))},
            r"file.*: state has shape \(0, 3\), there are no transitions",
        ),
        (without(d4rl(), "next_observations", "terminals", "timeouts"), "neither next states nor the ends"),
        (without(d4rl(), "next_observations") | {"terminals": np.ones(12)}, "no two rows of one episode"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field(written, columns, message):
    with pytest.raises(ValueError, match=message):
        read_flat(written(columns))


def test_names_and_files_that_are_not_there(tmp_path):
    path = as_npz(tmp_path, d4rl())
    with pytest.raises(ValueError, match="has no 'who' for behaviour"):
        read_flat(path, names={"behaviour": "who"})
    with pytest.raises(ValueError, match=r"names are given for state, action.* got reward"):
        read_flat(path, names={"reward": "rewards"})
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        read_flat(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"file\.csv: is no \.npz"):
        read_flat(tmp_path / "file.csv")
    np.savez(path, observations=np.array([{}]), actions=np.zeros(1))
    with pytest.raises(ValueError, match=r"file\.npz: observations: cannot be read: .*pickle"):
        read_flat(path)
    for name in ("bad.npz", "bad.h5"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(ValueError, match=rf"{name}: cannot be read"):
            read_flat(tmp_path / name)


def test_terminals_alone_do_not_say_where_episodes_were_cut(tmp_path):
    """Without time-outs the jump between the second episode, which was cut, and the third looks like a step."""
    file = as_npz(tmp_path, without(d4rl(), "next_observations", "timeouts"))
    with pytest.raises(ValueError, match=r"marks where episodes were cut .*\{'truncated': None\}") as caught:
        read_flat(file)
    assert "jump from one episode to the next" in str(caught.value)
    with pytest.warns(UserWarning, match="terminal transitions are dropped"):
        said = read_flat(file, names={"truncated": None})
    assert len(said) == 10  # of twelve rows, the two that terminate have no next state
