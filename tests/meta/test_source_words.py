"""Docstrings, messages and comments of the source are in plain English: none of the phrases of `tests/words.py`."""

from collections import defaultdict

import pytest

import shape
import words

LEFT = {
    "lab": 46,
    "envs": 37,
    "evaluation": 36,
    "cli": 15,
    "diagnosis": 10,
    "data": 8,
    "agent": 7,
    "ghm": 3,
    "mdp": 3,
    "improvement": 2,
    "learning": 2,
    "switching": 2,
    "types": 1,
}
"""How many phrases each room may still have."""


def phrases_by_room():
    rooms = defaultdict(list)
    for module, text in shape.Tree().modules.items():
        rooms[shape.room(module)] += [f"{module}:{phrase}" for phrase in words.found(text)]
    return rooms


@pytest.mark.parametrize(("room", "phrases"), phrases_by_room().items())
def test_source_is_in_plain_english(room, phrases):
    assert len(phrases) <= LEFT.get(room, 0), "\n".join(phrases)
