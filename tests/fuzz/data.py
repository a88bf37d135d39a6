"""Mutations of data files: each is read as transitions that pass their own check, or raises `FileError`.

npz      our own and flat ones: bytes, zipped again with other headers, members and values
columns  directories of `.npy`: bytes and headers
hdf5     flat files: bytes, and datasets of other shapes, types, storages and links
minari   datasets: bytes and fields of `metadata.json`, bytes and datasets of the episodes
"""

import io
import json
import os
import struct
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import campaign
import h5py
import numpy as np
from campaign import Campaign

from ggpi.data import (
    Transitions,
    read_flat,
    read_minari,
    read_npy,
    read_npz,
    write_minari,
    write_npy,
    write_npz,
)
from ggpi.data.transitions import FIELDS

STATES = np.sin(np.arange(26, dtype=np.float32)).reshape(13, 2)
ENDS = np.array([False] * 5 + [True] + [False] * 5 + [True])
DATA = Transitions(
    STATES[:-1],
    np.cos(np.arange(12, dtype=np.float32)).reshape(12, 1),
    STATES[1:],
    ENDS,
    np.zeros(12, bool),
    np.zeros(12, np.int32),
    np.repeat(np.arange(2, dtype=np.int32), 6),
    np.tile(np.arange(6, dtype=np.int32), 2),
)
FLAT = {
    "observations": STATES[:-1],
    "actions": np.arange(12, dtype=np.int64) % 3,
    "next_observations": STATES[1:],
    "terminals": ENDS,
    "timeouts": np.zeros(12, np.float32),
    "infos": np.zeros((12, 4)),
}
DTYPES = [
    "<f2",
    "<f4",
    ">f8",
    "<f8",
    "|b1",
    "|i1",
    "<i4",
    ">i8",
    "<u8",
    "<c8",
    "|O",
    "<U3",
    "<M8[s]",
    "|V4",
    "x",
]
SIZES = [0, 1, 2, 6, 11, 12, 13, 1000, 2**31, 10**12, 2**63, -1]
BITS = list(b"0123456789(),'{}[]-<>|fiub \n")
READERS = ("npz", "flat", "columns", "hdf5", "minari")
ORIGINALS = {}
"""Files by name of each kind, made once."""


def setup():
    """Every kind of file is written and read once."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "npz").mkdir()
        write_npz(root / "npz" / "a.npz", DATA)
        (root / "flat").mkdir()
        np.savez(root / "flat" / "a.npz", **FLAT)
        write_npy(root / "columns", DATA)
        (root / "hdf5").mkdir()
        with h5py.File(root / "hdf5" / "a.h5", "w") as file:
            for name, values in FLAT.items():
                file.create_dataset(name, data=values, compression="gzip" if values.ndim == 2 else None)
        (root / "minari").mkdir()
        os.environ["MINARI_DATASETS_PATH"] = str(root / "minari")
        write_minari(DATA, "ggpi/small-v0")
        for kind in READERS:
            files = [path for path in sorted((root / kind).rglob("*")) if path.is_file()]
            ORIGINALS[kind] = {str(path.relative_to(root / kind)): path.read_bytes() for path in files}
            assert len(read(kind, root / kind)) == 12
    os.environ.pop("MINARI_DATASETS_PATH")


def read(kind, folder):
    if kind == "npz":
        return read_npz(folder / "a.npz")
    if kind == "columns":
        return read_npy(folder)
    if kind == "minari":
        os.environ["MINARI_DATASETS_PATH"] = str(folder)
        return read_minari("ggpi/small-v0")
    return read_flat(folder / ("a.npz" if kind == "flat" else "a.h5"))


def make(rng, folder):
    kind = READERS[rng.integers(len(READERS))]
    files = dict(ORIGINALS[kind])
    name = sorted(name for name in files if "namespace" not in name)[rng.integers(-1, 1)]
    if kind == "columns":
        name = sorted(files)[rng.integers(len(files))]
    elif kind == "minari":
        end = ("metadata.json", "main_data.hdf5")[rng.integers(2)]
        name = next(name for name in files if name.endswith(end) and "small-v0" in name)
    if rng.random() < 0.5:
        files[name] = mutated(rng, files[name])
    elif kind in ("npz", "flat"):
        files[name] = rezipped(rng, files[name])
    elif name.endswith(".npy"):
        files[name] = renumbered(rng, files[name])
    elif name.endswith(".json"):
        files[name] = reworded(rng, files[name])
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if name.endswith((".h5", ".hdf5")) and files[name] == ORIGINALS[kind][name]:
        restored(rng, folder / name)
    return kind, folder


def mutated(rng, content):
    """Some bytes are flipped, replaced, cut out, put in or cut off."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at, end = sorted(rng.integers(len(content) + 1, size=2))
        match rng.integers(6):
            case 0 | 1 if at:
                content[at - 1] ^= 1 << rng.integers(8)
            case 2 if at:
                content[at - 1] = rng.choice([0, 1, 2, 127, 128, 255, *BITS])
            case 3 if rng.random() < 0.3:
                del content[at : min(end, at + 20)]
            case 4 if at + 8 <= len(content):
                content[at : at + 8] = struct.pack("<Q", int(rng.choice(SIZES[:-1])) % 2**64)
            case 5 if rng.random() < 0.2:
                del content[at:]
    return bytes(content)


def header(rng, values):
    """The `.npy` file of an array, whose header may lie."""
    descr, shape = values.dtype.str, tuple(values.shape)
    text = [repr(descr), "False", repr(shape)]
    place = rng.integers(3)
    wild = [
        "'" + DTYPES[rng.integers(len(DTYPES))] + "'",
        "[('a', '<f4')]",
        "{}",
        "None",
        "'x' * 9**9",
        "-" * 999 + "1",
    ]
    wild += [
        "(" * rng.integers(1, 2000),
        "9" * 5000,
        "(" + "1," * rng.integers(1, 70) + ")",
        "True",
        "lambda: 0",
    ]
    sizes = rng.choice(len(SIZES), size=rng.integers(1, 4))
    wild += [repr(tuple(SIZES[i] for i in sizes))] * 3
    text[place] = wild[rng.integers(len(wild))]
    words = f"{{'descr': {text[0]}, 'fortran_order': {text[1]}, 'shape': {text[2]}, }}\n".encode()
    version = (1, 0) if len(words) < 2**16 else (2, 0)
    packed = struct.pack("<H" if version == (1, 0) else "<I", len(words))
    return b"\x93NUMPY" + bytes(version) + packed + words + values.tobytes()


def changed(rng, values):
    """Another shape, type or number."""
    match rng.integers(7):
        case 0:
            return values[: rng.integers(len(values) + 1)]
        case 1:
            return values[..., None]
        case 2 if values.dtype.kind == "f":
            values = values.copy()
            values.flat[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e38, -1.0])
            return values
        case 3:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return values.astype(["f2", "f8", "i1", "i8", "u8", "?", "c8", "U3"][rng.integers(8)])
        case 4:
            return values.ravel()
        case 5:
            return np.asarray(values).T
        case 6 if values.dtype.kind in "iu":
            return values + rng.choice([-1, 5, 2**31 - 1])
    return values * rng.choice([0, 1, -1]) if values.dtype.kind in "if" else ~values


def renumbered(rng, content):
    """A `.npy` file with another header or other numbers."""
    values = np.load(io.BytesIO(content))
    if rng.random() < 0.6:
        return header(rng, values)
    file = io.BytesIO()
    np.save(file, changed(rng, values))
    return file.getvalue()


def rezipped(rng, content):
    """The archive with a member that is changed, is missing, is there twice, or is packed in another way."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = [(name, old.read(name)) for name in old.namelist()]
    i = rng.integers(len(members))
    name, member = members[i]
    match rng.integers(8):
        case 0:
            members.pop(i)
        case 1:
            members.append(members[i])
        case 2:
            members[i] = (name, mutated(rng, member))
        case 3:
            members[i] = (
                ["../x", "format.npy", "state.npy", "actions.npy", "é"][rng.integers(5)],
                member,
            )
        case _:
            if np.load(io.BytesIO(member)).ndim:
                members[i] = (name, renumbered(rng, member))
    methods = [
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
        zipfile.ZIP_DEFLATED,
        zipfile.ZIP_BZIP2,
        zipfile.ZIP_LZMA,
    ]
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        with zipfile.ZipFile(file, "w", methods[rng.integers(len(methods))]) as new:
            for name, member in members:
                new.writestr(name, member)
    return file.getvalue()


def reworded(rng, content):
    """JSON with another value for one field, or for one field of a space."""
    held = json.loads(content)
    odd = [
        None,
        0,
        -1,
        3,
        10**12,
        2**70,
        1.5,
        "x",
        "x" * 3000,
        [],
        {},
        [[]] * 9,
        True,
        "[" * 5000,
        "{}",
        '{"type": "Box"}',
    ]
    name = list(held)[rng.integers(len(held))]
    if rng.random() < 0.5 and "observation_space" in held:
        name = ["observation_space", "action_space"][rng.integers(2)]
        space = json.loads(held[name])
        space[list(space)[rng.integers(len(space))]] = [
            *odd,
            "Dict",
            "Discrete",
            [10**12],
            [2, 2],
            float("nan"),
        ][rng.integers(len(odd) + 5)]
        held[name] = json.dumps(space)
    elif rng.random() < 0.2:
        del held[name]
    else:
        held[name] = odd[rng.integers(len(odd))]
    return json.dumps(held).encode()


def restored(rng, path):
    """Another dataset, or a link, in place of one of HDF5."""
    with h5py.File(path, "a") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = names[rng.integers(len(names))]
        values, group = file[name][()], file
        del file[name]
        match rng.integers(11):
            case 0:
                group.create_dataset(name, (SIZES[rng.integers(10)], *values.shape[1:]), values.dtype)
            case 1:
                group[name] = h5py.SoftLink(f"/{names[0]}")
            case 2:
                group[name] = h5py.ExternalLink("other.h5", "/x")
            case 3:
                group.create_dataset(
                    name, values.shape, values.dtype, external=[("x.raw", 0, max(1, values.nbytes))]
                )
            case 4:
                group[name] = h5py.Empty("f4")
            case 5:
                group[name] = np.dtype("f4")
            case 6:
                group.create_group(name)["x"] = values
            case 7:
                group.create_dataset(name, data=["a"] * len(values))
            case 8:
                shape = (2 ** int(rng.integers(4, 30)), *values.shape[1:])
                group.create_dataset(
                    name, values.shape, values.dtype, chunks=shape, maxshape=(None,) * values.ndim
                )
            case _:
                new = changed(rng, values)
                group[name] = new if new.dtype.kind != "U" else new.astype("S")


def check(case):
    kind, folder = case
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning)
        data = read(kind, folder)
        assert isinstance(data, Transitions) and len(data) < 2**20
        assert {name: getattr(data, name).dtype.kind in "biuf" for name in FIELDS} == dict.fromkeys(
            FIELDS, True
        )
        if kind != "columns":  # what is mapped is not looked at before it is used
            data.check(at_least=0)
    return f"{kind} is read"


if __name__ == "__main__":
    sys.exit(campaign.main(Campaign("data", make, check, setup=setup)))
