"""OGBench's mazes at their smallest size."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("ogbench")

import ggpi.lab
from ggpi.envs.ogbench_maze import MAZES, OGBenchMaze
from ggpi.lab.ogbench import (
    errands,
    errands_figure,
    falls_figure,
    growth_figure,
    mazes,
    mazes_figure,
    patrols,
    places,
    published,
)
from ggpi.lab.ogbench.models import kind_of


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.slow
def test_mazes_have_every_number():
    config = mazes.PRESETS["tiny"]
    metrics = mazes.run(config)
    assert set(metrics["success"]) == set(metrics["milliseconds"])
    assert set(metrics["success"]) == {"closed loop", *(mazes.OTHERS[name] for name in config.others)}
    assert set(metrics["success"]["guide"]) == {"1", "2", "3", "4", "5", "all"}
    assert metrics["graphs"][0]["seconds"]["training"] > 0
    assert np.shape(metrics["picture"]["values"]) == (config.num_landmarks,)
    seconds = metrics["seconds"][0]
    assert list(seconds) == ["data", "training", "graph", "episodes", "all"]
    assert seconds["all"] == pytest.approx(sum(list(seconds.values())[:-1])) and min(seconds.values()) > 0
    assert [row["policy"] for row in metrics["jumps"]] == [policy.name for policy in config.policies]
    assert len(mazes_figure.table(metrics)) == 5
    assert len(mazes_figure.plot(metrics).axes) == 2


@pytest.mark.slow
def test_ant_mazes_have_every_number():
    others = ("depth-1", "halving", "cross-entropy", "recorded", "random", "directions", "guide")
    config = replace(
        mazes.PRESETS["tiny"], maze="antmaze-medium", others=others, num_transitions=1_024, draws=800
    )
    metrics = mazes.run(config)
    assert set(metrics["success"]) == {"closed loop", *(mazes.OTHERS[name] for name in others)}
    assert metrics["walkers"]["speed"] > 0.1
    assert np.shape(metrics["picture"]["values"]) == (config.num_landmarks,)
    assert metrics["seconds"][0]["walkers"] == 780 and metrics["seconds"][0]["all"] > 780
    assert len(mazes_figure.table(metrics)) == 7
    assert len(mazes_figure.plot(metrics).axes) == 2


@pytest.mark.slow
def test_growth_has_every_number(tmp_path):
    """The base stands in each of its groups, and is computed once."""
    metrics = ggpi.lab.run("ogbench-growth", preset="tiny", out=tmp_path)
    assert [(row["group"], row["setting"]) for row in metrics["rows"]] == [
        ("transitions", 4_096),
        ("units of a layer", 16),
        ("units of a layer", 128),
        ("landmarks", 20),
        ("landmarks", 100),
        ("jumps of each policy", 2),
        ("jumps of each policy", 4),
    ]
    assert len({row["success"]["low"] for row in metrics["rows"] if row["cell"] == "base"}) == 1
    assert len(list((tmp_path / "cells").rglob("*.json"))) == 4
    assert metrics["episodes"] == 5
    assert growth_figure.table(metrics).row_count == 7
    assert len(growth_figure.plot(metrics).axes) == 4


@pytest.mark.slow
def test_falls_have_every_number(tmp_path):
    metrics = ggpi.lab.run("ogbench-falls", preset="tiny", out=tmp_path)
    assert metrics["times"] == [10, 20] and set(metrics["places"]) == {"in the open", "in the maze"}
    assert all(len(row["down"]) == 2 for row in metrics["places"].values())
    assert falls_figure.table(metrics).row_count == 2
    assert len(falls_figure.plot(metrics).axes) == 1


@pytest.mark.slow
def test_errands_have_every_number(tmp_path):
    metrics = ggpi.lab.run("ogbench-errands", preset="tiny", out=tmp_path)
    assert set(metrics["tours"]) == set(errands.TOURS) and set(metrics["corridors"]) == {"0", "10"}
    assert set(metrics["patrols"]) == set(patrols.PATROLS)
    assert errands_figure.table(metrics).row_count == 9
    assert len(errands_figure.plot(metrics).axes) == 3


def test_what_others_report_is_quoted_for_every_maze():
    assert all(len(published.quoted(maze)) >= 5 for maze in MAZES)
    assert (
        published.quoted("antmaze-giant")["HIQL"] == "65 ± 5"
        and published.means("antmaze-giant")["HIQL"] == 65
    )
    assert published.quoted("antmaze-teleport")["CRL"] == "54"
    assert mazes_figure.jumpy_table("antmaze-giant").row_count == 2


@pytest.mark.parametrize("body", ["pointmaze", "antmaze"])
def test_mazes_with_teleports_are_learned_with_patience(body):
    plain, own = kind_of(f"{body}-giant"), kind_of(f"{body}-teleport")
    assert own.gamma > plain.gamma and own.waves > plain.waves
    assert own.recipe == replace(plain.recipe, loss=replace(plain.recipe.loss, far=(0, 1)))


def test_all_agents_are_compared_in_the_medium_mazes_only():
    assert mazes.Config(maze="pointmaze-medium").compared == tuple(mazes.OTHERS)
    assert mazes.Config().compared == mazes.FEW
    assert mazes.Config(others=("guide",)).compared == ("guide",)
    assert set(mazes.OTHERS) - set(mazes.Config(maze="antmaze-medium").compared) == {"mpc"}
    assert mazes.Config(maze="antmaze-giant").compared == mazes.FEW_OF_ANTS


def test_planners_that_unroll_single_steps_do_not_choose_walkers():
    with pytest.raises(ValueError, match="mpc acts in point mazes only"):
        mazes.Config(maze="antmaze-medium", others=("mpc",))


@pytest.mark.parametrize("wrong", [{"maze": "pointmaze-small"}, {"others": ("guides",)}])
def test_unknown_names_raise(wrong):
    with pytest.raises(ValueError, match="is called"):
        mazes.Config(**wrong)


def test_a_corridor_can_be_avoided():
    world = OGBenchMaze("pointmaze-giant")
    assert places.detour_tasks(world) == [1, 2, 3, 4, 5]
    squares = places.corridor_of(world, 4)
    assert squares.shape == (3, 2) and world.possible(squares).all()


def test_the_guide_takes_the_shortest_tour():
    config = errands.Config(episodes=1)
    world = OGBenchMaze(config.maze)
    start, rooms, seed = errands.tour_task(config, 0)
    steps, path = errands.follow(config, errands.shortest_tour(world, rooms), start, rooms, seed)
    assert steps == len(path) - 1 > 0
    for place in rooms:
        assert np.linalg.norm(path - place, axis=1).min() <= world.radius
