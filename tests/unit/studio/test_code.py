"""What is clicked is code: the Python runs and plans the same, and the command is understood and plays."""

import contextlib
import io
import shlex
from dataclasses import replace
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
from ggpi.studio.code import Moment
from ggpi.studio.decisions import Settings, decider, random_key

from .conftest import WORLDS

CATALOGUE = Catalogue(WORLDS)
WORLD_OF_ONE_NETWORK = directory("maze-ghms", "maze")


def planned(python):
    """What a script makes, and what it prints."""
    made, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python, made)
    return made, printed.getvalue()


FAR = "disc(11, 2, 0.6) - box(1, 1, 2, 2)"


@pytest.mark.parametrize(
    ("name", "settings", "formula"),
    [
        ("four-rooms", Settings(1, samples=30), "disc(11, 2, 0.6)"),
        ("four-rooms", Settings(2, samples=20, gamma=0.8123456789, alpha=0.2345678901), FAR),
        ("four-rooms", Settings(2, "halving", 20), FAR),
        ("four-rooms", Settings(2, "beam", 20), FAR),
        ("point-mass", Settings(1, samples=40), "x"),
        pytest.param("point-mass", Settings(2, samples=20), "x", marks=pytest.mark.slow),
        pytest.param("point-mass", Settings(3, samples=5), "x", marks=pytest.mark.slow),
        pytest.param("point-mass", Settings(2, "halving", 40), "x", marks=pytest.mark.slow),
        pytest.param("point-mass", Settings(2, "beam", 20), "x", marks=pytest.mark.slow),
        pytest.param("four-rooms", Settings(0, samples=30), "disc(11, 2, 0.6)", marks=pytest.mark.slow),
        pytest.param("point-mass", Settings(0, samples=40), "x", marks=pytest.mark.slow),
    ],
)
def test_the_code_plans_as_the_page(name, settings, formula):
    """The same plans with the same values: the same models, reward, state, to the last digit, and random numbers."""
    world = CATALOGUE.open(name)
    state = world.body(0).state
    if world.places is None:
        state = state + np.float32(1 / 3_000)  # not a short number
    made, printed = planned(code.python(world, formula, [Moment(settings, state, 7, 1, 3)]))
    own = decider(world, settings, world.reward(formula)).agent
    chosen = own.plan(state, key=random_key(7, 1, 3))
    np.testing.assert_array_equal(made["state"], state)
    assert np.any(chosen.value), "values that are all 0 say nothing of random numbers"
    assert [gsp.policies for gsp in made["plan"].gsps] == [gsp.policies for gsp in chosen.gsps]
    for part in ("value", "stderr", "best", "action"):
        one, two = getattr(made["plan"], part), getattr(chosen, part)
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-7)
    assert printed.strip() == chosen.gsps[int(chosen.best)].name(world.ghms.names)


def test_the_code_has_both_agents():
    world, state = CATALOGUE.open("four-rooms"), np.asarray(5)
    moments = [Moment(Settings(1, samples=10), state), Moment(Settings(2, samples=10), state, 0, 1, 4)]
    text = code.python(world, "x", moments)
    assert text.index("# the second agent") > text.index("depth=1")
    made, printed = planned(text)
    second = decider(world, moments[1].settings, world.reward("x")).agent
    np.testing.assert_allclose(made["plan"].value, second.plan(state, key=random_key(0, 1, 4)).value)
    assert len(printed.splitlines()) == 2
    one, two = code.command(world, "x", moments).splitlines()
    assert "--depth 1" in one and "--depth 2" in two


def test_the_command_is_understood():
    world = CATALOGUE.open("point-mass")
    state = np.array([-0.1, 1 / 3, 0, 0], np.float32)
    moment = Moment(Settings(2, samples=50), state, 4)
    line = code.command(world, "disc(1, 2, .5) - .1*abs(vx)", [moment])
    options, rest = parser().parse_known_args(shlex.split(line)[1:])
    assert not rest and options.reward == "formula:disc(1, 2, .5) - .1*abs(vx)"
    assert (str(options.models), options.depth, options.samples) == ("point-mass-ghms", 2, 50)
    assert (options.seed, options.episodes, options.max_steps) == (4, 1, world.max_steps)
    np.testing.assert_array_equal(np.asarray(options.start, np.float32), state)


def test_a_finite_mdp_is_played_by_its_name():
    world = CATALOGUE.open("four-rooms")
    line = code.command(world, "x", [Moment(Settings(2), world.body(0).state)])
    assert line.startswith("ggpi play four-rooms ") and line.endswith("--seed 0 --start=3.0,2.0")


def test_a_world_that_was_made_in_python_has_no_command():
    world = replace(CATALOGUE.open("four-rooms"), played="")
    assert code.command(world, "x", [Moment(Settings(2), np.asarray(0))]) == ""


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
    world = CATALOGUE.open("point-mass")
    line = code.command(world, "x", [Moment(settings, world.body(0).state)])
    found = shlex.split(line)
    assert found[: found.index("--episodes")] == [
        *("ggpi", "play", "point-mass-ghms", "--reward", "formula:x"),
        *words,
    ]


def test_another_gamma_is_in_the_code_and_in_the_command():
    pytest.importorskip("mujoco", reason="the maze needs MuJoCo")
    world, settings = WORLD_OF_ONE_NETWORK(), Settings(2, gamma=0.9, alpha=0.2)
    state = world.body(0).state
    assert world.ghms.network is not None
    assert "--gamma" not in code.command(world, "x", [Moment(Settings(2), state)])
    assert " --gamma 0.9 --alpha 0.2 " in code.command(world, "x", [Moment(settings, state)])
    assert "ghms.with_gamma(0.9).with_alpha(0.2)" in code.python(world, "x", [Moment(settings, state)])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [Settings(0), Settings(1, "halving", 40)])
def test_the_command_has_the_agent_of_the_page(settings):
    """The same values of the same plans with the same key, from a reward that the command reads."""
    world = CATALOGUE.open("point-mass")
    moment = Moment(settings, world.body(0).state)
    options, _ = parser().parse_known_args(shlex.split(code.command(world, "x", [moment]))[1:])
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
    found = code.python(
        CATALOGUE.open("four-rooms"), "'); import os  # ", [Moment(Settings(2), np.asarray(0))]
    )
    assert 'formula  = ggpi.rewards.read_formula("\'); import os  # ",' in found
