"""Rewards in words: what they mean, and what is wrong with those that mean nothing."""

from pathlib import Path

import numpy as np
import pytest

import ggpi
from ggpi.rewards.text import read_python, read_reward

SPEC = ggpi.StateSpec(("x", "y", "vx"))
FILE = """\
import ggpi
def near(state):
    return -abs(state[0])
effort = ggpi.rewards.state_action(lambda state, action: -action[0] ** 2)
number = 3
"""


def pays(text, state):
    reward = read_reward(text, SPEC)
    assert reward.form == "arrival"
    return float(reward.values(np.array(state, np.float32)))


def test_targets_of_named_numbers():
    assert pays("target:y=2,x=1,radius=.5", [1.2, 2.2, 9]) == 1
    assert pays("target:y=2,x=1,radius=.5", [2, 1, 9]) == 0
    assert pays("target: vx = -1e0 , radius = .5", [5, 5, -1.2]) == 1


def test_weighted_features():
    assert pays("features:vx=1,x=-.5", [4, 100, 3]) == 1


def test_what_a_file_calls_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    assert pays("python:mine.py:near", [-3, 0, 0]) == -3
    assert read_reward("python:mine.py:effort", SPEC).form == "state_action"
    assert read_python("mine.py:number") == 3
    with pytest.raises(ValueError, match=r"mine.py:number is a int, expected a reward"):
        read_reward("python:mine.py:number", SPEC)
    with pytest.raises(ValueError, match="has no 'far'; it has ggpi, near, effort, number"):
        read_reward("python:mine.py:far", SPEC)
    Path("broken.py").write_text("1 / 0")
    with pytest.raises(ValueError, match=r"broken.py raised ZeroDivisionError"):
        read_reward("python:broken.py:near", SPEC)


def test_saved_rewards(tmp_path):
    ggpi.save(tmp_path / "reward", ggpi.rewards.target((1.0,), 0.5, (2,)))
    assert pays(f"saved:{tmp_path / 'reward'}", [0, 0, 1.2]) == 1
    ggpi.save(tmp_path / "spec", SPEC)
    with pytest.raises(ValueError, match="holds a StateSpec"):
        read_reward(f"saved:{tmp_path / 'spec'}", SPEC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a reward is target:NAME=NUMBER"),
        ("goal:x=1", "a reward is target:NAME=NUMBER.*got 'goal:x=1'"),
        ("target:x=1,y=2", "a target needs a radius: target:x=1,y=2,radius=.5"),
        ("target:radius=1", "a target needs state dimensions, such as target:x=1"),
        ("target:", "expected NAME=NUMBER, separated by commas; got ''"),
        ("target:x=1,2,radius=1", "got '2' in 'x=1,2,radius=1'"),
        ("target:z=1,radius=1", "there is no state dimension 'z'; available: x, y, vx, radius"),
        ("target:x=one,radius=1", "x must be a finite number, got 'one'"),
        ("target:x=nan,radius=1", "x must be a finite number, got 'nan'"),
        ("target:x=1,x=2,radius=1", "x appears twice"),
        ("target:x=1,radius=0", "radius of a target must be positive"),
        ("features:x=1,radius=1", "there is no state dimension 'radius'; available: x, y, vx"),
        ("python:mine.txt:near", "expected FILE.py:NAME, got 'mine.txt:near'"),
        ("python:near", "expected FILE.py:NAME"),
        ("python:missing.py:near", "there is no file missing.py"),
    ],
)
def test_words_that_mean_nothing(text, words):
    with pytest.raises(ValueError, match=words):
        read_reward(text, SPEC)


def test_a_reward_that_is_not_there():
    with pytest.raises(OSError, match="nowhere"):
        read_reward("saved:nowhere", SPEC)
