"""Tensors out of a PyTorch file, without PyTorch.

Since version 1.6 `torch.save` writes a zip: `data.pkl` says which tensor is which part of which storage, and
`data/0`, `data/1`, … are the storages, raw. The pickle goes through `ggpi.policies.pickles`, so nothing of it
is executed.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np

from ggpi.policies.pickles import Record, numpy_and_dicts, read_pickle, record_of

STORAGES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "b1",
}


LEGACY = b"\x80\x02\x8a\x0a"
"""How files of PyTorch before 1.6 begin: with a long number as a pickle."""
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError)


def read_zip(file: Any, source: str) -> dict[str, bytes]:
    """The members of a zip, by name; one that is damaged is refused.

    Beyond the paper: policies trained with PyTorch come in zips
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise ValueError(f"{source} is damaged or no zip file: {error}") from error


def read_tensors(content: bytes, source: str) -> dict[str, np.ndarray]:
    """The named tensors of a saved `state_dict`.

    Beyond the paper: policies trained with PyTorch run in JAX
    """
    if content.startswith(LEGACY):
        raise ValueError(f"{source} is of PyTorch before 1.6: load and save it again with a newer one")
    members = read_zip(io.BytesIO(content), source)
    pickles = [name for name in members if name.endswith("data.pkl")]
    if len(pickles) != 1:
        raise ValueError(
            f"{source} is no file of torch.save: it holds {len(pickles)} data.pkl instead of one"
        )
    storages = _Storages(members, pickles[0].removesuffix("data.pkl"))
    named = read_pickle(members[pickles[0]], source, _stand_ins, storages)
    if not isinstance(named, dict) or not all(isinstance(tensor, np.ndarray) for tensor in named.values()):
        raise ValueError(f"{source} holds no state_dict, a dictionary of tensors")
    return dict(named)


class _Storages:
    """Gives the raw numbers that a tensor refers to."""

    def __init__(self, members: dict[str, bytes], root: str):
        self.members, self.root = members, root
        self.order = ">" if members.get(f"{root}byteorder") == b"big" else "<"

    def __call__(self, reference: Any) -> np.ndarray:
        _, kind, key, *_ = reference
        if not issubclass(kind, Record) or kind.name not in STORAGES:
            raise ValueError(f"storages of type {getattr(kind, 'name', kind)} are not read")
        dtype = np.dtype(self.order + STORAGES[kind.name])
        return np.frombuffer(self.members[f"{self.root}data/{key}"], dtype)


def _stand_ins(module: str, name: str) -> Any:
    if module == "torch" and name.endswith("Storage"):
        return record_of(module, name)
    return _REBUILD.get((module, name)) or numpy_and_dicts(module, name)


def _tensor(storage: np.ndarray, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any):
    """A view of the storage, copied; NumPy checks that it lies inside."""
    size = storage.dtype.itemsize
    steps = tuple(step * size for step in stride)
    return np.array(np.ndarray(tuple(shape), storage.dtype, storage, offset * size, steps))


def _parameter(data: np.ndarray, *_: Any) -> np.ndarray:
    return data


_REBUILD = {
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
}
