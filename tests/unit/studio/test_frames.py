"""The documented fields are those of the messages that are read and of the frames that are sent."""

import json
from dataclasses import fields

import pytest

from ggpi.studio import stage as stages
from ggpi.studio.catalogue import Catalogue
from ggpi.studio.frames import HEARD, SENT, tables
from ggpi.studio.protocol import KINDS, Change, read_binary

from .conftest import WORLDS, undocumented
from .test_stage import Sent


def headers(stage):
    return [
        json.loads(frame) if isinstance(frame, str) else read_binary(frame)[0]
        for frame in stage.outbox.frames
    ]


def test_messages_have_the_documented_fields():
    assert HEARD.keys() == KINDS.keys()
    for kind, documented in HEARD.items():
        assert list(documented) == [field.name for field in fields(KINDS[kind])]


@pytest.mark.parametrize(
    ("name", "depths"),
    [("four-rooms", (2,)), *(pytest.param(name, (2, 0), marks=pytest.mark.slow) for name in WORLDS)],
)
def test_frames_have_no_other_fields_than_the_documented_ones(name, depths):
    stage = stages.Stage(Catalogue(WORLDS), Sent())
    stage.open(name)
    for depth in depths:
        stage.change(Change(depth=depth, samples=10))
        stage.plan_and_move()
        stage.step()
        stage.finish()
        stage.explain(0, 0)
    stage.diagnose()
    stage.complain("wrong")
    found = headers(stage)
    assert {header["type"] for header in found} == SENT.keys() - {"hello"}
    assert not [extra for header in found if (extra := undocumented(header))]


def test_an_undocumented_field_is_noticed():
    assert undocumented({"type": "status", "text": "", "more": 1}) == {"more"}
    assert undocumented({"type": "moment", "plans": [{"value": 1, "more": 2}]}) == {"plans[].more"}
    assert undocumented({"type": "values", "arrays": [{"name": "more", "shape": [1]}]}) == {"more: array"}


def test_every_documented_field_has_words_and_a_row():
    text = tables()
    for kind, documented in (*HEARD.items(), *SENT.items()):
        assert f"| `{kind}` |" in text
        for name in documented:
            assert f"| `{name}` |" in text
