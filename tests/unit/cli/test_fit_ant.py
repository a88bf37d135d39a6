"""`ggpi fit ant`: the config's fields are options, the result is calibrated and can be played."""

import json
from pathlib import Path

import pytest

from ggpi.cli.main import main

pytest.importorskip("mujoco")


@pytest.mark.slow
def test_tiny_models_are_calibrated_and_played(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    from ggpi.cli import fit_ant as ant_fitting

    calibrate = ant_fitting.calibration
    monkeypatch.setattr(ant_fitting, "calibration", lambda ghms: calibrate(ghms, 2, 2))
    given = ["fit", "ant", "--preset", "tiny", "--steps", "2", "--num-transitions", "640", "--seed", "3"]
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert "Models against simulation" in shown and "ggpi play results/fit-ant-tiny-seed3" in shown
    world = json.loads(Path("results/fit-ant-tiny-seed3/world.json").read_text())
    assert world["settings"]["steps"] == 2 and world["relative"] == ["x", "y"]
    play = ["play", "results/fit-ant-tiny-seed3", "--reward", "target:x=2,y=2,radius=.3", "--samples", "2"]
    assert main([*play, "--episodes", "1", "--max-steps", "3"]) == 0
    assert "never" in capsys.readouterr().out
    assert main([*given[:5], "3", *given[6:]]) == 0
    world = json.loads(Path("results/fit-ant-tiny-seed3/world.json").read_text())
    assert world["settings"]["steps"] == 3, "more steps continue a fit"
    capsys.readouterr()
    assert main(given) == 2
    assert "steps = 3, now it is 2; more steps continue it" in capsys.readouterr().err


def test_a_calibration_is_judged():
    from ggpi.cli.fit_ant import judged

    def row(policy, energy, width):
        return {
            "policy": policy,
            "energy": energy,
            "model": {"within_along": width, "within_across": width},
            "true": {"within_along": 1.0, "within_across": 1.0},
        }

    found = judged({"0.9": [row("up", 0.01, 1.1), row("down", 0.01, 3.0)], "0.8": [row("up", 0.9, 1.0)]})
    assert found["up"]["0.9"]["verdict"] == "good"
    assert (found["down"]["0.9"]["verdict"], found["down"]["0.9"]["why"]) == ("bad", ["3 times too wide"])
    assert found["up"]["0.8"]["why"] == ["samples are distributed unlike true futures (energy 0.9)"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "huge"], "no preset is called 'huge'"),
        (["--stepps", "3"], "--stepps"),
        (["--env", "X"], "--env"),
    ],
)
def test_complaints(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "ant", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_help_shows_the_fields(capsys):
    assert main(["fit", "ant", "--help"]) == 0
    assert "--num-transitions" in capsys.readouterr().out
