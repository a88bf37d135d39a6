"""What is clicked is code: the Python runs and plans the same, and the command is understood."""

import contextlib
import io
import shlex
from pathlib import Path

import numpy as np
import pytest

from ggpi.cli.main import parser
from ggpi.cli.play import FIELDS
from ggpi.cli.play_episodes import PlayConfig, as_in_studio
from ggpi.lab.fit_directory import read_world, shipped
from ggpi.rewards.text import read_reward
from ggpi.studio import code
from ggpi.studio.catalogue import Catalogue, directory
from ggpi.studio.decisions import Settings, decide, decider, random_key

from .conftest import WORLDS

CATALOGUE = Catalogue(WORLDS)
WORLD_OF_ONE_NETWORK = directory("maze-ghms", "maze")


@pytest.mark.parametrize(
    ("name", "settings", "formula"),
    [
        ("four-rooms", Settings(1, samples=300), "disc(11, 2, 0.6)"),
        ("four-rooms", Settings(1, samples=300, gamma=0.8, alpha=0.25), "disc(11, 2, 0.6) - box(1, 1, 2, 2)"),
        ("point-mass", Settings(1, samples=40), "x"),
        pytest.param("four-rooms", Settings(0, samples=300), "disc(11, 2, 0.6)", marks=pytest.mark.slow),
        pytest.param("point-mass", Settings(0, samples=40), "x", marks=pytest.mark.slow),
        pytest.param("point-mass", Settings(1, "halving", 40), "x", marks=pytest.mark.slow),
    ],
)
def test_the_code_plans_as_the_page(name, settings, formula):
    """The best plan is far ahead in each case: right is the way to a reward that grows to the right."""
    world = CATALOGUE.open(name)
    state = world.body(0).state
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code.python(world, settings, formula, state), {})
    chosen = decide(decider(world, settings, world.reward(formula)), world, state, key=random_key(0, 0, 0))
    names = world.ghms.names
    assert names[chosen.policy] == "right"
    assert printed.getvalue().strip() == "right"


def test_the_command_is_understood():
    world = CATALOGUE.open("point-mass")
    line = code.command(world, Settings(2, samples=50), "disc(1, 2, .5) - .1*abs(vx)")
    options, rest = parser().parse_known_args(shlex.split(line)[1:])
    assert not rest and options.reward == "formula:disc(1, 2, .5) - .1*abs(vx)"
    assert (str(options.models), options.depth, options.samples) == ("point-mass-ghms", 2, 50)


def test_a_finite_mdp_has_no_command():
    assert code.command(CATALOGUE.open("four-rooms"), Settings(2), "x") == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(0), ["--depth", "inf", "--samples", "100"]),
        (Settings(0, "halving"), ["--depth", "inf", "--samples", "100"]),
        (Settings(2, "halving"), ["--depth", "2", "--samples", "100", "--planner", "halving"]),
        (Settings(3, "beam", 40), ["--depth", "3", "--samples", "40", "--planner", "beam"]),
    ],
)
def test_planners_and_the_closed_loop_have_commands(settings, words):
    line = code.command(CATALOGUE.open("point-mass"), settings, "x")
    assert shlex.split(line) == ["ggpi", "play", "point-mass-ghms", "--reward", "formula:x", *words]


def test_another_gamma_is_in_the_code_and_in_the_command():
    pytest.importorskip("mujoco", reason="the maze needs MuJoCo")
    world, settings = WORLD_OF_ONE_NETWORK(), Settings(2, gamma=0.9, alpha=0.2)
    assert world.ghms.network is not None and "--gamma" not in code.command(world, Settings(2), "x")
    assert code.command(world, settings, "x").endswith("--gamma 0.9 --alpha 0.2")
    assert "ghms.with_gamma(0.9).with_alpha(0.2)" in code.python(world, settings, "x", world.body(0).state)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [Settings(0), Settings(1, "halving", 40)])
def test_the_command_has_the_agent_of_the_page(settings):
    """The same values of the same plans with the same key, from a reward that the command reads."""
    world = CATALOGUE.open("point-mass")
    options, _ = parser().parse_known_args(shlex.split(code.command(world, settings, "x"))[1:])
    config = PlayConfig(**{name: getattr(options, name) for name in FIELDS})
    agent = as_in_studio(options.models, read_reward(options.reward, world_spec()), config)
    state, key = world.body(0).state, random_key(0, 0, 0)
    own = decider(world, settings, world.reward("x")).agent
    one, two = agent.plan(state, key=key), own.plan(state, key=key)
    np.testing.assert_array_equal(one.action, two.action)
    np.testing.assert_allclose(one.value, two.value)


def world_spec():
    return read_world(shipped(Path("point-mass-ghms"))).spec


def test_quotes_in_a_formula_stay_inside_its_text():
    """A formula that is not one never reaches the code; text that did would be quoted."""
    found = code.python(CATALOGUE.open("four-rooms"), Settings(2), "'); import os  # ", np.asarray(0))
    assert 'formula  = ggpi.rewards.read_formula("\'); import os  # ",' in found
