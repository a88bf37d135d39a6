"""Arrays in files from elsewhere (`.npy`, `.npz`, HDF5): what they declare is checked before memory is spent on it.

    .npy     plain numbers, whose header declares exactly the bytes that follow it
    .npz     stored or deflated members, each name once; a member is read on first use
    HDF5     datasets in the file itself: links, external storage and virtual datasets raise errors

Compression gains at most a factor of 1032 (zlib's limit), so an array that is declared larger than that is not in the
file. Everything that goes wrong on the way becomes a `FileError`.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.storage.errors import FileError
from ggpi.storage.reading import as_file_errors, file_size, memory, short

LARGEST_GAIN = 1032
"""How much zlib compresses at most."""
SMALL = 2**20
"""Bytes that nobody asks about."""
CHUNK = 2**26
"""Bytes of a chunk of HDF5 that may be larger than its dataset."""


def check_size(path: Path, field: str, size: int, stored: int) -> None:
    """Raises if an array is larger than what is stored of it can be."""
    if size > LARGEST_GAIN * stored + SMALL:
        raise FileError(path, f"declares {size} bytes, {stored} are stored", field=field)


def check_memory(path: Path, size: int) -> None:
    """Raises if so many bytes would not fit into memory."""
    if size > memory():
        raise FileError(path, f"needs {size} bytes, this machine has {memory()}")


class Npz(Mapping[str, np.ndarray]):
    """The arrays of an `.npz` file by name, each read on first use."""

    def __init__(self, path: Path, stack: ExitStack):
        self.path = path
        with as_file_errors(path):
            file_size(path)
            self.file = stack.enter_context(zipfile.ZipFile(path))
            members = self.file.infolist()
        self.members = {member.filename.removesuffix(".npy"): member for member in members}
        if len(self.members) < len(members):
            raise FileError(path, "has several members of one name")

    def __getitem__(self, name: str) -> np.ndarray:
        member = self.members[name]
        check_size(self.path, name, member.file_size, member.compress_size)
        check_memory(self.path, member.file_size)
        with as_file_errors(self.path, name):
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FileError(self.path, "expected a stored or deflated member", field=name)
            with self.file.open(member) as file:
                return _read_npy(file, member.file_size)

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


def _read_npy(file: Any, size: int) -> np.ndarray:
    dtype, shape, order, begin = _header(file)
    values = np.empty(math.prod(shape), dtype) if _declared(dtype, shape) == size - begin else None
    if values is None:
        raise ValueError(f"{dtype} {shape} takes {_declared(dtype, shape)} bytes, there are {size - begin}")
    view = values.view(np.uint8).data
    done = 0
    while got := file.readinto(view[done:]) if done < len(view) else len(file.read(1)):
        done += got
    if done != len(view):
        raise ValueError(f"{done} of {len(view)} bytes are there")
    return values.reshape(shape, order=order)


def _header(file: Any) -> tuple[np.dtype, tuple[int, ...], Any, int]:
    """Type, shape, order and the place of the first byte; only plain numbers, and names."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of .npy")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, is_fortran, dtype = read(file)
    except DeprecationWarning as error:  # of old names of texts, where warnings are errors
        raise ValueError(f"expected numbers, got {short(error)}") from error
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are not read")
    if dtype.kind not in "biufU" or dtype.itemsize > 400 or not dtype.itemsize:
        raise ValueError(f"expected numbers, got {short(dtype, 60)}")
    if len(shape) > 8 or any(size < 0 for size in shape):
        raise ValueError(f"shape {short(shape, 60)}")
    return dtype, shape, "F" if is_fortran else "C", file.tell()


def _declared(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    return math.prod(shape) * dtype.itemsize


def map_npy(path: Path) -> np.ndarray:
    """One column, mapped."""
    with as_file_errors(path):
        size = file_size(path)
        with path.open("rb") as file:
            dtype, shape, order, begin = _header(file)
        there = size - begin
        if _declared(dtype, shape) != there:
            raise ValueError(f"{dtype} {shape} takes {_declared(dtype, shape)} bytes, there are {there}")
        return np.memmap(path, dtype, "r", begin, shape, order)


def open_hdf5(path: Path, stack: ExitStack) -> dict[str, Any]:
    """The datasets of an HDF5 file by name, not read yet; links do not count."""
    h5py = _h5py()
    found: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item

    with as_file_errors(path):
        file_size(path)
        stack.enter_context(file := h5py.File(path, "r"))
        file.visititems(keep)
    return found


def check_dataset(path: Path, name: str, values: Any) -> None:
    """Raises unless a dataset of HDF5 is of plain numbers that are in this file."""
    with as_file_errors(path, name):
        if values.external or values.is_virtual:
            raise FileError(path, "is stored in other files, which are not read", field=name)
        if values.dtype.kind not in "biuf":
            raise FileError(path, f"expected numbers, got {short(values.dtype, 60)}", field=name)
        if values.shape is None:
            raise FileError(path, "is empty", field=name)
        size = _declared(values.dtype, values.shape)
        check_size(path, name, size, values.id.get_storage_size())
        if values.chunks and _declared(values.dtype, values.chunks) > max(CHUNK, size):
            raise FileError(path, f"has chunks of {values.chunks}, larger than the dataset", field=name)


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("HDF5 files need the extra: pip install '.[data]' in the checkout") from error
    return h5py
