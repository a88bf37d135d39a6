"""Running an experiment: what is written, what is refused, what survives an interruption."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ggpi import cluster
from ggpi.cli.main import main
from ggpi.lab import cells
from ggpi.storage import arrays as io
from ggpi.storage.locking import sole_writer

OUT = Path("out")


def run(*options):
    return main(["run", "dummy", "--out", str(OUT), *options])


def read(name):
    return json.loads((OUT / name).read_text())


def error(capsys):
    """The one line on stderr, below the progress bar."""
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_results_hold_everything(dummy, capsys):
    assert run("--preset", "tiny", "--gamma", "1/8", "--seed", "3") == 0
    assert sorted(path.name for path in OUT.iterdir()) == [
        "cells",
        "config.json",
        "figure.png",
        "metrics.json",
    ]
    about = read("config.json")
    assert about["experiment"] == "dummy" and about["preset"] == "tiny"
    assert about["config"] == {"seed": 3, "gamma": 0.125, "numbers": [1, 2]}
    assert about["versions"].keys() == {"python", "ggpi", "jax", "numpy"}
    assert about["seconds"] >= 0
    assert read("metrics.json") == {"gamma": 0.125, "squares": [1, 4]}
    assert (OUT / "figure.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "square" in shown and str(OUT / "figure.png") in shown


def test_without_the_command_line_the_numbers_are_the_same(dummy):
    run()
    assert cells.as_stored(dummy.run(dummy.Config())) == read("metrics.json")


def test_default_directory_names_the_run(dummy):
    assert main(["run", "dummy", "--preset", "tiny", "--seed", "7"]) == 0
    assert Path("results/dummy-tiny-seed7/metrics.json").exists()


def test_interrupted_run_goes_on(dummy, capsys):
    dummy.STOP_AT.append(3)
    assert run() == 130
    assert "the same command continues" in error(capsys)
    assert not (OUT / "metrics.json").exists()
    assert not [path for path in OUT.rglob("*") if path.name.startswith(".")]
    assert main(["plot", str(OUT)]) == 2 and "unfinished" in error(capsys)
    dummy.STOP_AT.clear()
    assert run() == 0
    assert dummy.CALLS == [1, 2, 3]
    assert read("metrics.json")["squares"] == [1, 4, 9]


@pytest.mark.parametrize(
    "damage", ['{"stamp": "', '{"stamp": "other", "seconds": 1, "result": {"square": 7}}', "[]"]
)
def test_cells_of_other_code_or_damaged_are_computed_anew(dummy, damage):
    run()
    (OUT / "cells/squares/n-2.json").write_text(damage)
    assert run() == 0
    assert dummy.CALLS == [1, 2, 3, 2]
    assert read("metrics.json")["squares"] == [1, 4, 9]


def test_other_config_is_refused_unless_forced(dummy, capsys):
    run()
    before = {path: path.read_bytes() for path in OUT.rglob("*") if path.is_file()}
    assert run("--gamma", "0.5") == 2
    assert "gamma=0.9 (now 0.5)" in error(capsys)
    assert before == {path: path.read_bytes() for path in OUT.rglob("*") if path.is_file()}
    assert run("--gamma", "0.5", "--force") == 0
    assert read("config.json")["config"]["gamma"] == 0.5
    assert dummy.CALLS == [1, 2, 3, 1, 2, 3]


def test_other_experiment_is_refused(dummy, capsys):
    run()
    about = read("config.json") | {"experiment": "chain"}
    (OUT / "config.json").write_text(json.dumps(about))
    assert run() == 2
    assert "holds results of chain, not of dummy" in error(capsys)


@pytest.mark.parametrize("name", ["thesis.tex", "metrics.json", "config.json"])
def test_foreign_files_are_never_touched(dummy, capsys, name):
    OUT.mkdir()
    (OUT / name).write_text("{}")
    assert run("--force") == 2
    assert "ggpi" in error(capsys)
    assert [path.name for path in OUT.iterdir()] == [name]
    assert (OUT / name).read_text() == "{}"


def test_out_is_a_file(dummy, capsys):
    OUT.write_text("")
    assert run() == 2 and "is a file" in error(capsys)


def test_what_a_killed_run_left_aside_is_swept(dummy):
    dummy.STOP_AT.append(2)
    run()
    script = (
        "import os; from ggpi.storage.arrays import replacing; "
        "replacing('cells/squares/n-2.json').__enter__().touch(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=OUT)
    with io.replacing(OUT / "cells/squares/n-3.json") as alive:
        alive.touch()
        dummy.STOP_AT.clear()
        assert run() == 0
        assert list(OUT.rglob(".*")) == [alive]


def test_a_run_is_told_of_another_one(dummy, capsys):
    with ThreadPoolExecutor(1) as pool, sole_writer(OUT, "the first"):
        assert pool.submit(run).result() == 2
    assert f"{OUT.resolve()} is in use by this process (the first, since" in error(capsys)
    assert run() == 0


def test_plot_redraws_without_computing(dummy, capsys):
    run()
    (OUT / "figure.png").unlink()
    assert main(["plot", str(OUT)]) == 0
    assert (OUT / "figure.png").exists() and dummy.CALLS == [1, 2, 3]


def test_plot_says_what_is_wrong(dummy, capsys):
    assert main(["plot", "nowhere"]) == 2 and "not a directory" in error(capsys)
    OUT.mkdir()
    assert main(["plot", str(OUT)]) == 2 and "empty" in error(capsys)


@pytest.mark.parametrize("name", ["../up", "/etc/x", "a//b", ".hidden", ""])
def test_cell_names_stay_inside(dummy, tmp_path, name):
    with pytest.raises(ValueError, match="cell name"):
        cells.resumable(tmp_path, "mark", cluster.local())({name: dict})
