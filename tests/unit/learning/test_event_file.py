"""Event files: what TensorBoard would read, read back by hand. (A slow test reads them with TensorBoard itself.)"""

import struct

import jax
import pytest

import ggpi
from ggpi.learning.event_file import EventFile, TensorBoard, _checksum, _varint
from ggpi.policies import direction_policies


def records(path):
    """The messages of an event file, after a check of both checksums."""
    content = path.read_bytes()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event = content[12 : 12 + length]
        assert content[8:12] == _checksum(content[:8])
        assert content[12 + length : 16 + length] == _checksum(event)
        yield event
        content = content[16 + length :]


def fields(message):
    """(number, value) of each field of a message of protobuf."""
    while message:
        key, message = number(message)
        if key & 7 == 0:
            value, message = number(message)
        elif key & 7 == 2:
            length, message = number(message)
            value, message = message[:length], message[length:]
        else:
            size, code = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            (value,), message = struct.unpack(code, message[:size]), message[size:]
        yield key >> 3, value


def number(message):
    value = shift = 0
    while True:
        byte, message = message[0], message[1:]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, message


def scalars(path):
    """step → tag → value."""
    found = {}
    for event in map(dict, map(fields, records(path))):
        for _, value in fields(event.get(5, b"")):
            tag, simple = dict(fields(value)).values()
            found.setdefault(event[2], {})[tag.decode()] = simple
    return found


def test_the_checksum_is_the_one_of_the_standard():
    """CRC-32C of "123456789" is 0xE3069283 in every list of check values; here it is masked."""
    masked = ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert _checksum(b"123456789") == struct.pack("<I", masked)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 10**12])
def test_varints(value):
    assert number(_varint(value)) == (value, b"")


def test_scalars_by_step(tmp_path):
    file = EventFile(tmp_path / "new", 0)
    file.write(250, {"loss": 1.5, "held_out/π 0.9": -2.0})
    file.write(100_000, {"loss": 0.5})
    assert scalars(file.path) == {250: {"loss": 1.5, "held_out/π 0.9": -2.0}, 100_000: {"loss": 0.5}}
    first, start, *_ = map(dict, map(fields, records(file.path)))
    assert first[3] == b"brain.Event:2"
    assert start[2] == 1 and dict(fields(start[7])) == {1: 1}, "what was written of later steps is withdrawn"
    assert EventFile(tmp_path / "new", 0).path != file.path


@pytest.mark.slow
def test_a_fit_writes_the_losses_of_every_model(tmp_path):
    policies = direction_policies()[:2]
    data = ggpi.collect("ggpi/PointMass-v0", policies, 600, seed=1)
    given = {"steps": 2, "out": tmp_path, "callbacks": [TensorBoard()], "key": jax.random.key(0)}
    ggpi.fit(policies, data, gamma=0.9, alpha=1 / 9, **given)
    (path,) = tmp_path.glob("events.out.tfevents.*")
    (at_2,) = scalars(path).values()
    names = {f"{policy} {horizon}" for policy in ("right", "up") for horizon in ("0.9", "0.8")}
    assert {tag.partition("/")[2] for tag in at_2} - {""} == names
    losses = [value for tag, value in at_2.items() if tag.startswith("held_out/")]
    assert at_2["held_out"] == pytest.approx(sum(losses) / 4, rel=1e-5)
