"""Messages are read or rejected, frames survive the way there and back."""

import json
import math
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggpi.studio import protocol
from ggpi.studio.protocol import Change, Explain, Open, Play, ProtocolError, Put, read

GOOD = [
    ({"type": "open", "world": "maze"}, Open("maze")),
    ({"type": "change"}, Change()),
    ({"type": "change", "depth": 0, "samples": 10, "repeat": True}, Change(depth=0, samples=10, repeat=True)),
    ({"type": "change", "gamma": 0.9, "formula": "x"}, Change(gamma=0.9, formula="x")),
    ({"type": "play"}, Play()),
    ({"type": "put", "x": 1, "y": -2.5}, Put(1.0, -2.5)),
    ({"type": "explain", "agent": 1, "t": 7}, Explain(1, 7)),
]
BAD = [
    "",
    "[]",
    "null",
    "{",
    '{"type": 3}',
    '{"type": "quit"}',
    '{"type": "open"}',
    '{"type": "open", "world": 3}',
    '{"type": "open", "world": "' + "x" * 200 + '"}',
    '{"type": "play", "now": true}',
    '{"type": "put", "x": 1}',
    '{"type": "put", "x": NaN, "y": 0}',
    '{"type": "put", "x": Infinity, "y": 0}',
    '{"type": "put", "x": true, "y": 0}',
    '{"type": "put", "x": 1e7, "y": 0}',
    '{"type": "change", "depth": 4}',
    '{"type": "change", "depth": 2.0}',
    '{"type": "change", "samples": 0}',
    '{"type": "change", "samples": 100000}',
    '{"type": "change", "gamma": 1}',
    '{"type": "change", "alpha": 0}',
    '{"type": "change", "repeat": 1}',
    '{"type": "explain", "agent": 2, "t": 0}',
    '{"type": "explain", "agent": 0, "t": -1}',
    "[" * 10_000,
    " " * (protocol.LARGEST + 1),
    '{"type": "play"}' + " " * protocol.LARGEST,
]


@pytest.mark.parametrize(("held", "expected"), GOOD)
def test_messages(held, expected):
    assert read(json.dumps(held)) == expected


@pytest.mark.parametrize("text", BAD, ids=[text[:40] for text in BAD])
def test_other_texts_are_rejected(text):
    with pytest.raises(ProtocolError):
        read(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=8),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=6), parts, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.sampled_from([*protocol.CHECKS, "type", "other"]), JSON, max_size=5)


@given(st.sampled_from([*protocol.KINDS, "other"]), FIELDS)
def test_any_fields_make_a_message_or_an_error(kind, fields):
    try:
        found = read(json.dumps({**fields, "type": kind}))
    except ProtocolError:
        return
    assert isinstance(found, protocol.KINDS[kind])


@given(st.binary(max_size=200))
def test_any_bytes_make_a_message_or_an_error(data):
    try:
        read(data.decode("latin-1"))
    except ProtocolError:
        return


def test_frames_survive():
    arrays = {"one": np.arange(6.0).reshape(3, 2), "two": np.zeros((0, 2)), "three": np.ones(5)}
    header, found = protocol.read_binary(protocol.binary_frame("moment", arrays, word="α", n=math.inf))
    assert header["type"] == "moment" and header["word"] == "α" and header["n"] is None
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_arrays_start_at_multiples_of_four_bytes():
    """As the Float32Array of a page needs it."""
    for word in ("", "a", "ab", "abc", "ä"):
        frame = protocol.binary_frame("moment", {"one": np.ones(1)}, word=word)
        assert len(frame) % 4 == 0 and int.from_bytes(frame[:4], "little") % 4 == 0


def test_numbers_that_are_not_finite_become_null():
    held = {
        "a": np.float32("nan"),
        "b": [np.inf, 1],
        "c": np.array([np.nan, 2.0]),
        "d": np.int64(3),
        "e": True,
    }
    assert protocol.cleaned(held) == {"a": None, "b": [None, 1], "c": [None, 2.0], "d": 3, "e": True}


def test_the_docstring_names_every_message():
    for kind in protocol.KINDS:
        assert kind in protocol.__doc__
    for name in protocol.CHECKS:
        assert name in protocol.__doc__
