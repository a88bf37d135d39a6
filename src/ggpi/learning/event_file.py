"""Event files for TensorBoard: scalars by step, written without a package.

    ggpi.fit(policies, data, …, out="models", callbacks=[TensorBoard()])     then tensorboard --logdir models

A file is a sequence of records, each a length, a checksum of it, bytes, and a checksum of them. The bytes are messages
of protobuf: Event(wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7), where a summary has
values(tag = 1, simple_value = 2), and a session log with status = 1 withdraws what was written of later steps.
"""

from __future__ import annotations

import functools
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from ggpi.learning.log import Report

VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5


class TensorBoard:
    """A callback of `ggpi.fit` that writes the metrics of a training as event files into its directory."""

    def __init__(self):
        self._starts: dict[Path, int] = {}
        self._files: dict[Path, EventFile] = {}

    def __call__(self, report: Report) -> None:
        if report.directory is None:
            raise ValueError("TensorBoard() needs out=, the directory where its files go")
        if report.loss is None or report.held_out is None:
            self._starts[report.directory] = report.step
            return
        if report.directory not in self._files:
            self._files[report.directory] = EventFile(report.directory, self._starts[report.directory])
        scalars = {
            "steps_per_second": report.rate,
            "loss": report.loss.mean(),
            "held_out": report.held_out.mean(),
        }
        for name, values in (("loss", report.loss), ("held_out", report.held_out)):
            scalars |= {f"{name}/{label}": x for label, x in zip(report.labels, values, strict=True)}
        self._files[report.directory].write(report.step, {tag: float(x) for tag, x in scalars.items()})


class EventFile:
    """Scalars by step in a new file of a directory."""

    def __init__(self, directory: Path, step: int):
        """Starts after a step: what an interrupted run wrote of later steps is withdrawn."""
        directory.mkdir(parents=True, exist_ok=True)
        stem, number = f"events.out.tfevents.{int(time.time()):010d}.{os.getpid()}", 0
        while (path := directory / f"{stem}.{number}").exists():
            number += 1
        self.path = path
        self._append(_field(3, BYTES, b"brain.Event:2"))
        self._append(_field(2, VARINT, step + 1) + _field(7, BYTES, _field(1, VARINT, 1)))

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        values = (_field(1, BYTES, tag.encode()) + _field(2, FLOAT, value) for tag, value in scalars.items())
        summary = b"".join(_field(1, BYTES, value) for value in values)
        self._append(_field(2, VARINT, step) + _field(5, BYTES, summary))

    def _append(self, event: bytes) -> None:
        event = _field(1, DOUBLE, time.time()) + event
        length = struct.pack("<Q", len(event))
        with self.path.open("ab") as file:
            file.write(length + _checksum(length) + event + _checksum(event))


def _field(number: int, kind: int, value: int | float | bytes) -> bytes:
    head = _varint(number << 3 | kind)
    if isinstance(value, bytes):
        return head + _varint(len(value)) + value
    return head + (
        _varint(int(value)) if kind == VARINT else struct.pack("<d" if kind == DOUBLE else "<f", value)
    )


def _varint(number: int) -> bytes:
    """Seven bits per byte, the lowest first; the eighth bit says that there are more."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _checksum(content: bytes) -> bytes:
    """CRC-32C, masked as in files of TensorFlow."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _table()[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@functools.cache
def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [entry >> 1 ^ (0x82F63B78 if entry & 1 else 0) for entry in table]
    return table
