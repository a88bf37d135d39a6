"""ggpi sweep: every combination is a run of its own, read before any is started, and shown in one table."""

import json
from pathlib import Path

import pytest

from ggpi.cli.main import main
from ggpi.cli.sweep import runs_of, seeds_of
from ggpi.lab.sweeps import Run, leaves, table

NAME = "four-rooms-transfer"


def sweep(*options):
    return main(["sweep", NAME, "--preset", "tiny", "--out", "out", *options])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_every_combination_is_run(capsys):
    options = ("--set", "gamma=.9,.8", "--seeds", "1", "--show", "gamma")
    assert sweep(*options, "--on", "processes:2") == 0
    shown = capsys.readouterr().out
    assert "gamma=.9" in shown and "gamma=.8" in shown and "sweep.json" in shown
    runs = json.loads(Path("out/sweep.json").read_text())["runs"]
    assert list(runs) == [f"gamma={gamma}/seed-1" for gamma in (".9", ".8")]
    for name, numbers in runs.items():
        config = json.loads((Path("out") / name / "config.json").read_text())["config"]
        metrics = json.loads((Path("out") / name / "metrics.json").read_text())
        assert f"gamma={config['gamma']:g}".replace("0.", ".") == name.partition("/")[0]
        assert f"seed-{config['seed']}" == name.partition("/")[2]
        assert numbers == dict(leaves(metrics))
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("cells/**/*.json")}
    assert before and sweep(*options) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before, (
        "finished cells are not computed again"
    )


def test_values_of_several_words_and_fields():
    runs = runs_of(NAME, "tiny", ["depths=1 2,1", "gamma=1/2,.9"], [3])
    assert [run.name for run in runs] == [
        f"depths={depths}_gamma={gamma}/seed-3" for depths in ("1-2", "1") for gamma in ("1-2", ".9")
    ]
    assert [(run.config.depths, run.config.gamma, run.config.seed) for run in runs] == [
        (depths, gamma, 3) for depths in ((1, 2), (1,)) for gamma in (0.5, 0.9)
    ]
    assert [run.name for run in runs_of(NAME, "tiny", [], [0])] == ["default/seed-0"]


@pytest.mark.parametrize(
    ("text", "seeds"), [("0", [0]), ("0-4", [0, 1, 2, 3, 4]), ("0,3,7", [0, 3, 7]), ("1-2,5", [1, 2, 5])]
)
def test_seeds(text, seeds):
    assert seeds_of(text) == seeds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "0..4"], "such as 0-4 or 0,3,7; got '0..4'"),
        (["--seeds", "4-0"], "holds no seed"),
        (["--seeds", "0,0"], "same setting and seed"),
        (["--set", "gamma"], "--set takes FIELD=VALUE,VALUE"),
        (["--set", "gamma=.9,"], "--set takes FIELD=VALUE,VALUE"),
        (["--set", "gama=.9"], "gama"),
    ],
)
def test_mistakes_are_found_before_anything_runs(options, words, capsys):
    assert sweep(*options) == 2
    assert words in capsys.readouterr().err
    assert not Path("out").exists()


class Config:
    def __init__(self, seed):
        self.seed = seed


def test_the_table_has_means_and_standard_errors():
    """Of 1 and 3: mean 2, standard deviation √2, standard error 1."""
    runs = [Run("a=1", Config(0)), Run("a=1", Config(1)), Run("a=2", Config(0))]
    numbers = {
        "a=1/seed-0": {"x": 1.0, "y": 5},
        "a=1/seed-1": {"x": 3.0, "y": 5},
        "a=2/seed-0": {"x": 7.0, "y": 5},
    }
    shown = table(runs, numbers, [])
    assert [column.header for column in shown.columns] == ["setting", "seeds", "x"], (
        "y is the same everywhere"
    )
    cells = [list(column.cells) for column in shown.columns]
    assert cells == [["a=1", "a=2"], ["2", "1"], ["2 ± 1", "7"]]
    with pytest.raises(ValueError, match="no number is called 'z'; there are x, y"):
        table(runs, numbers, ["z"])


def test_leaves():
    nested = {"a": {"b": 1, "c": [2.5, {"d": 3}]}, "e": True, "f": "x", "g": None}
    assert dict(leaves(nested)) == {"a.b": 1, "a.c.0": 2.5, "a.c.1.d": 3}
