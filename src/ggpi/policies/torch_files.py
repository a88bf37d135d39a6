"""Tensors out of a PyTorch file, without PyTorch.

Since version 1.6 `torch.save` writes a zip: `data.pkl` says which tensor is which part of which storage, and
`data/0`, `data/1`, … are the storages, raw. The pickle goes through `ggpi.policies.pickles`, so nothing of it
is executed.
"""

from __future__ import annotations

import io
import zipfile
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


def read_tensors(content: bytes, source: str) -> dict[str, np.ndarray]:
    """The named tensors of a saved `state_dict`.

    Beyond the paper: policies trained with PyTorch run in JAX
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise ValueError(
            f"{source} is damaged, or of PyTorch before 1.6: load and save it again with a newer one"
        ) from None
    pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
    if len(pickles) != 1:
        raise ValueError(
            f"{source} is no file of torch.save: it holds {len(pickles)} data.pkl instead of one"
        )
    storages = _Storages(archive, pickles[0].removesuffix("data.pkl"), source)
    named = read_pickle(archive.read(pickles[0]), source, _stand_ins, storages)
    if not isinstance(named, dict) or not all(isinstance(tensor, np.ndarray) for tensor in named.values()):
        raise ValueError(f"{source} holds no state_dict, a dictionary of tensors")
    return dict(named)


class _Storages:
    """Gives the raw numbers that a tensor refers to."""

    def __init__(self, archive: zipfile.ZipFile, root: str, source: str):
        self.archive, self.root, self.source = archive, root, source
        names = set(archive.namelist())
        big = f"{root}byteorder" in names and archive.read(f"{root}byteorder") == b"big"
        self.order = ">" if big else "<"

    def __call__(self, reference: Any) -> np.ndarray:
        _, kind, key, *_ = reference
        if not issubclass(kind, Record) or kind.name not in STORAGES:
            raise ValueError(f"storages of type {getattr(kind, 'name', kind)} are not read")
        dtype = np.dtype(self.order + STORAGES[kind.name])
        return np.frombuffer(self.archive.read(f"{self.root}data/{key}"), dtype)


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
