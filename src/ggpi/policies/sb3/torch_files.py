"""Reads tensors from a PyTorch file, without PyTorch.

Since version 1.6 `torch.save` writes a zip: `data.pkl` describes which part of which storage each tensor is, and
`data/0`, `data/1`, … are the raw storages. `ggpi.policies.sb3.pickles` reads the pickle without executing it, and only
the storages of requested tensors are read.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ggpi.policies.sb3 import pickles
from ggpi.policies.sb3.archives import Archive
from ggpi.policies.sb3.pickled_arrays import Name, UnreadableError, checked_sizes
from ggpi.policies.sb3.pickles import read_pickle
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

BYTES = 256 * 2**20
"""The largest file, and the largest total size of the requested tensors in single precision."""
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
"""The first bytes of files before PyTorch 1.6."""


class Storage(NamedTuple):
    """A storage of numbers in the file."""

    dtype: str
    key: str
    size: int


class Tensor(NamedTuple):
    """A tensor as a part of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def read_tensors(
    content: bytes, path: str | Path, field: str, wanted: Callable[[str], bool]
) -> dict[str, np.ndarray]:
    """The tensors of a saved `state_dict` whose names are `wanted`, in single precision."""
    if content.startswith(LEGACY):
        raise FileError(
            path, "was written by PyTorch before 1.6: load and save it with a newer version", field=field
        )
    archive = Archive(io.BytesIO(content), path, field)
    found = [name for name in archive.names if name.endswith("data.pkl")]
    if len(found) != 1:
        problem = f"is not a file of torch.save: it holds {len(found)} members data.pkl, expected one"
        raise FileError(path, problem, field=field)
    pickled = archive.read(found[0], pickles.BYTES)
    named = read_pickle(pickled, path, field, _is_storage, _REBUILD, _storage)
    if not isinstance(named, dict) or not all(isinstance(tensor, Tensor) for tensor in named.values()):
        raise FileError(path, "is not a state_dict, a dictionary of tensors", field=field)
    chosen = {name: tensor for name, tensor in named.items() if isinstance(name, str) and wanted(name)}
    if sum(prod(tensor.shape) for tensor in chosen.values()) * 4 > BYTES:
        raise FileError(path, f"has tensors of more than {BYTES} bytes in single precision", field=field)
    return _Storages(archive, found[0].removesuffix("data.pkl"), path, field).read(chosen)


class _Storages:
    """Reads each storage once."""

    def __init__(self, archive: Archive, root: str, path: str | Path, field: str):
        self.archive, self.root, self.path, self.field = archive, root, path, field
        order = f"{root}byteorder"
        self.order = ">" if order in archive.names and archive.read(order, 100) == b"big" else "<"
        self.left = BYTES

    def read(self, tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
        known: dict[Storage, np.ndarray] = {}
        arrays: dict[str, np.ndarray] = {}
        for name, tensor in tensors.items():
            if 0 in tensor.shape:
                raise FileError(
                    self.path, f"is empty: its shape is {tensor.shape}", field=f"{self.field}: {name[:80]}"
                )
            if tensor.storage not in known:
                known[tensor.storage] = self._numbers(tensor.storage)
            arrays[name] = _single(_view(known[tensor.storage], tensor))
        return arrays

    def _numbers(self, storage: Storage) -> np.ndarray:
        content = self.archive.read(f"{self.root}data/{storage.key}", self.left)
        self.left -= len(content)
        dtype = np.dtype(self.order + storage.dtype)
        if len(content) != storage.size * dtype.itemsize:
            problem = f"has {len(content)} bytes, expected {storage.size} numbers of {dtype}"
            raise FileError(self.path, problem, field=f"{self.field}: {self.root}data/{storage.key}")
        return np.frombuffer(content, dtype)


def _single(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # infinities are rejected by the caller
        return values.astype(np.float32, copy=False)


def _view(numbers: np.ndarray, tensor: Tensor) -> np.ndarray:
    size = numbers.itemsize
    steps = tuple(step * size for step in tensor.stride)
    return np.ndarray(tensor.shape, numbers.dtype, numbers, tensor.offset * size, steps)


def _is_storage(name: Name) -> bool:
    return name.module == "torch" and name.name.endswith("Storage")


def _storage(reference: object) -> Storage:
    if not (isinstance(reference, tuple) and len(reference) == 5):
        raise UnreadableError("it refers to data outside that is not a storage")
    _, kind, key, _, count = reference
    if not isinstance(kind, Name) or kind.name not in STORAGES:
        raise UnreadableError(f"it has a storage of type {abbreviate(kind)}, which is not supported")
    if not isinstance(key, str) or len(key) > 100 or type(count) is not int or count < 0:
        raise UnreadableError("it has a storage without a short name and a size")
    return Storage(STORAGES[kind.name], key, count)


def _tensor(storage: object, offset: object, shape: object, stride: object, *_: object) -> Tensor:
    """A tensor that lies inside its storage and is not larger than it, as it could be with stride 0."""
    if not isinstance(storage, Storage):
        raise UnreadableError("it has a tensor without a storage")
    shape, stride = checked_sizes("shape", shape), checked_sizes("strides", stride)
    (start,) = checked_sizes("offset", (offset,))
    last = start + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if prod(shape) > storage.size or (prod(shape) and last >= storage.size):
        raise UnreadableError(
            f"it has a tensor of shape {abbreviate(shape)}, strides {abbreviate(stride)} and offset {start} "
            f"in a storage of {storage.size} numbers"
        )
    return Tensor(storage, start, shape, stride)


def _parameter(data: object, *_: object) -> object:
    return data


_REBUILD = {
    Name("torch._utils", "_rebuild_tensor"): _tensor,
    Name("torch._utils", "_rebuild_tensor_v2"): _tensor,
    Name("torch._utils", "_rebuild_parameter"): _parameter,
}
