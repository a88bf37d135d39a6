"""Data files that are damaged, or made to harm, raise `FileError` before memory is spent; nothing in them is run."""

import contextlib
import json
import struct
import zipfile

import numpy as np
import pytest

from ggpi import FileError
from ggpi.cli.fit_environment import read_data
from ggpi.data import read_flat, read_minari, read_npy, read_npz, write_minari, write_npy, write_npz
from ggpi.data.transitions import FIELDS

h5py = pytest.importorskip("h5py")
COLUMNS = {
    "observations": np.arange(12, dtype=np.float32).reshape(6, 2),
    "actions": np.zeros((6, 1), np.float32),
    "terminals": np.array([0, 0, 1, 0, 0, 1], bool),
    "next_observations": np.arange(2, 14, dtype=np.float32).reshape(6, 2),
}


def npy(header: str, data: bytes = b"", version=(1, 0)) -> bytes:
    length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + length + header.encode() + data


def zipped(path, changes, method=zipfile.ZIP_DEFLATED):
    """A flat file whose members are changed; a list of pairs, so that names may be there twice."""
    np.savez(path, **COLUMNS)
    with zipfile.ZipFile(path) as file:
        members = [(name, file.read(name)) for name in file.namelist() if name not in dict(changes)]
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in (*members, *changes):
            file.writestr(name, content)
    return path


HEADERS = {
    "larger than the file": npy(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 2)}", bytes(99)
    ),
    "nested": npy("{'descr': " + "[" * 3000 + "]" * 3000 + "}"),
    "signs": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "-" * 5000 + "1,)}"),
    "token": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,"),
    "complex": npy("{'descr': '<c8', 'fortran_order': False, 'shape': (6,)}", bytes(48)),
    "object": npy("{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", bytes(48)),
    "records": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", bytes(24)),
    "negative": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-6, 2)}", bytes(48)),
    "axes": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 64 + ")}", bytes(4)),
    "no numbers": npy("{'descr': '<f4', 'fortran_order': False, 'shape': ('6', 2)}", bytes(48)),
    "version": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6, 2)}", bytes(48), (9, 9)),
    "longer than declared": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2)}", bytes(48)),
    "an old name of text": npy("{'descr': '|a4', 'fortran_order': False, 'shape': (6,)}", bytes(24)),
    "nothing": b"",
    "text": b"observations",
}


@pytest.mark.parametrize("content", HEADERS.values(), ids=HEADERS)
def test_headers_that_lie(tmp_path, content):
    path = zipped(tmp_path / "a.npz", [("observations.npy", content)])
    with pytest.raises(FileError, match=r"a\.npz: observations: ") as caught:
        read_flat(path)
    assert len(str(caught.value)) < 500
    (tmp_path / "columns").mkdir()
    for name, values in COLUMNS.items():
        np.save(tmp_path / "columns" / f"{name}.npy", values)
    read_flat(tmp_path / "columns")
    (tmp_path / "columns" / "observations.npy").write_bytes(content)
    with pytest.raises(FileError, match=r"observations\.npy"):
        read_flat(tmp_path / "columns")


def test_members_that_are_not_needed_are_not_read(tmp_path):
    data = read_flat(zipped(tmp_path / "a.npz", [("other.npy", HEADERS["nested"]), ("images.npy", b"")]))
    np.testing.assert_array_equal(data.state, COLUMNS["observations"])
    (tmp_path / "columns").mkdir()
    for name, values in COLUMNS.items():
        np.save(tmp_path / "columns" / f"{name}.npy", values)
    (tmp_path / "columns" / "rewards.npy").write_bytes(b"")
    np.testing.assert_array_equal(read_flat(tmp_path / "columns").state, COLUMNS["observations"])


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_archives_that_are_odd(tmp_path):
    content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6, 2)}", bytes(48))
    path = zipped(tmp_path / "a.npz", [("observations.npy", content)] * 2)
    with pytest.raises(FileError, match="several members of one name"):
        read_flat(path)
    path = zipped(tmp_path / "a.npz", [("observations.npy", content)], zipfile.ZIP_LZMA)
    with pytest.raises(FileError, match="expected a stored or deflated member"):
        read_flat(path)
    np.savez(path, **COLUMNS)
    raw = bytearray(path.read_bytes())
    raw[raw.rfind(b"PK\x01\x02") + 24 : raw.rfind(b"PK\x01\x02") + 28] = struct.pack("<I", 2**31)
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"next_observations: declares 2147483648 bytes"):
        read_flat(path)
    with pytest.raises(FileError, match=r"a\.npz"):
        read_data(str(zipped(tmp_path / "a.npz", [("format.npy", content)])))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("behaviour", np.full(6, np.nan), "behaviour is a whole number"),
        ("behaviour", np.full(6, 0.5), "behaviour is a whole number"),
        ("behaviour", np.full(6, 2**40), "behaviour is a whole number"),
        ("observations", np.full((6, 2), 1e300), "state has numbers that are not finite"),
        ("actions", np.full(6, 2**40), "is a whole number of 32 bits"),
        ("actions", np.zeros((6, 1), complex), "expected numbers, got complex128"),
        ("terminals", np.full(6, np.nan), "terminated is true or false"),
    ],
)
def test_values_are_checked(tmp_path, name, values, words):
    np.savez(tmp_path / "a.npz", **COLUMNS | {name: values})
    with pytest.raises(FileError, match=words):
        read_flat(tmp_path / "a.npz", names={"behaviour": name} if name == "behaviour" else None)


def hdf5(path, change):
    with h5py.File(path, "w") as file:
        for name, values in COLUMNS.items():
            file[name] = values
        del file["observations"]
        change(file)
    return path


def external(file):
    (file_path := file.filename + ".raw").encode()
    np.arange(12, dtype=np.float32).tofile(file_path)
    file.create_dataset("observations", (6, 2), np.float32, external=[(file_path, 0, 48)])


def virtual(file):
    layout = h5py.VirtualLayout((6, 2), np.float32)
    layout[...] = h5py.VirtualSource("other.h5", "observations", (6, 2))
    file.create_virtual_dataset("observations", layout)


HDF5 = {
    "external storage": (external, "stored in other files"),
    "virtual": (virtual, "stored in other files"),
    "huge": (
        lambda f: f.create_dataset("observations", (10**12, 2), np.float32),
        "declares 8000000000000 bytes",
    ),
    "huge chunk": (
        lambda f: f.create_dataset("observations", (6, 2), np.float32, chunks=(2**28, 2), maxshape=(None, 2)),
        "chunks of",
    ),
    "external link": (lambda f: f.__setitem__("observations", h5py.ExternalLink("b.h5", "x")), "has no 'obs"),
    "soft link": (lambda f: f.__setitem__("observations", h5py.SoftLink("/actions")), "has no 'obs"),
    "complex": (lambda f: f.__setitem__("observations", np.zeros((6, 2), complex)), "expected numbers"),
    "text": (lambda f: f.__setitem__("observations", ["a"] * 6), "expected numbers"),
    "null": (lambda f: f.__setitem__("observations", h5py.Empty("f4")), "observations: "),
    "a type": (lambda f: f.__setitem__("observations", np.dtype("f4")), "has no 'observations'"),
}


@pytest.mark.parametrize(("change", "words"), HDF5.values(), ids=HDF5)
def test_datasets_that_are_not_in_the_file(tmp_path, change, words):
    with pytest.raises(FileError, match=rf"a\.h5: .*{words}"):
        read_flat(hdf5(tmp_path / "a.h5", change))


def test_damaged_hdf5(tmp_path):
    path = hdf5(tmp_path / "a.h5", lambda file: file.__setitem__("observations", COLUMNS["observations"]))
    content = path.read_bytes()
    read_flat(path)
    rng = np.random.default_rng(0)
    for _ in range(50):
        changed = bytearray(content[: rng.integers(1, len(content) + 1)] if rng.random() < 0.5 else content)
        for place in rng.integers(len(changed), size=5):
            changed[place] = rng.integers(256)
        path.write_bytes(changed)
        with contextlib.suppress(FileError):
            assert len(read_flat(path)) <= 6


def transitions():
    from ggpi.data import Transitions

    flags = np.zeros(6, bool)
    states = np.arange(14, dtype=np.float32).reshape(7, 2)
    ints = np.zeros(6, np.int32), np.zeros(6, np.int32), np.arange(6, dtype=np.int32)
    return Transitions(states[:-1], np.zeros((6, 1), np.float32), states[1:], flags, flags, *ints)


@pytest.mark.parametrize("name", FIELDS)
def test_our_own_columns(tmp_path, name):
    data = transitions()
    write_npz(tmp_path / "a.npz", data)
    write_npy(tmp_path / "columns", data)
    read_npz(tmp_path / "a.npz"), read_npy(tmp_path / "columns")
    column = tmp_path / "columns" / f"{name}.npy"
    for values in (np.zeros(6, complex), np.zeros((6, 1, 1)), np.array(0.0), np.zeros(5)):
        np.save(column, values)
        with pytest.raises(FileError, match="columns"):
            read_npy(tmp_path / "columns")
        arrays = {field: getattr(data, field) for field in FIELDS} | {name: values}
        np.savez(tmp_path / "a.npz", format=np.array("ggpi transitions 1"), **arrays)
        with pytest.raises(FileError, match=r"a\.npz"):
            read_npz(tmp_path / "a.npz")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    write_minari(transitions(), "ggpi/small-v0")
    return tmp_path / "ggpi" / "small-v0" / "data"


def test_a_dataset_does_not_run_what_its_environment_names(dataset, tmp_path):
    path = dataset / "metadata.json"
    facts = json.loads(path.read_text())
    spec = {"id": "Any-v0", "entry_point": "os:mkdir", "kwargs": {"path": str(tmp_path / "made")}}
    del facts["action_space"]
    path.write_text(json.dumps(facts | {"env_spec": json.dumps(spec | {"additional_wrappers": []})}))
    with pytest.raises(FileError, match=r"metadata\.json: cannot be read: 'action_space'"):
        read_minari("ggpi/small-v0")
    assert not (tmp_path / "made").exists()


BOX = {"type": "Box", "dtype": "float32", "shape": [2], "low": [-1, -1], "high": [1, 1]}


@pytest.mark.parametrize(
    "change",
    [
        {"total_steps": 10**9},
        {"total_steps": "x"},
        {"total_episodes": 0},
        {"total_episodes": 10**9},
        {"observation_space": 3},
        {"observation_space": "[" * 9999},
        {"observation_space": json.dumps(BOX | {"shape": [10**12]})},
        {"observation_space": json.dumps(BOX | {"low": [2, 2]})},
        {"observation_space": json.dumps(BOX | {"low": [float("nan"), 0]})},
        {"observation_space": json.dumps(BOX | {"dtype": "O"})},
        {"observation_space": json.dumps({"type": "Text"})},
        {"observation_space": json.dumps({"type": "Dict", "subspaces": 3})},
        {"action_space": json.dumps({"type": "Discrete", "n": -3, "start": 0})},
    ],
)
def test_metadata_that_lie(dataset, change):
    path = dataset / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError):
        read_minari("ggpi/small-v0")


@pytest.mark.parametrize(
    "name", ["observations", "actions", "rewards", "terminations", "truncations", "infos/step"]
)
def test_episodes_that_lie(dataset, name):
    read_minari("ggpi/small-v0")
    with h5py.File(dataset / "main_data.hdf5", "a") as file:
        values = file[f"episode_0/{name}"][()]
        del file[f"episode_0/{name}"]
        file[f"episode_0/{name}"] = values[:-1]
    with pytest.raises(FileError, match=r"main_data\.hdf5"):
        read_minari("ggpi/small-v0")
    with h5py.File(dataset / "main_data.hdf5", "a") as file:
        del file[f"episode_0/{name}"]
        file[f"episode_0/{name}"] = h5py.ExternalLink("other.h5", "x")
    if name == "infos/step":
        assert read_minari("ggpi/small-v0").step.tolist() == list(range(6))
    else:
        with pytest.raises(FileError, match=r"main_data\.hdf5"):
            read_minari("ggpi/small-v0")
