"""Cells on executors: the same numbers wherever they are computed, and a run may move from one to another."""

import json
import pickle
import subprocess
import sys

import pytest

from ggpi import cluster, lab
from ggpi.cli.main import main
from ggpi.lab import contract

NAME = "counterexamples"


@pytest.fixture(scope="module")
def executor():
    with cluster.processes(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The numbers of a process of one thread."""
    out = tmp_path_factory.mktemp("alone") / "out"
    command = [
        sys.executable,
        "-m",
        "ggpi",
        "run",
        NAME,
        "--preset",
        "tiny",
        "--threads",
        "1",
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return (out / "metrics.json").read_bytes()


def cells_of(out):
    return {path: json.loads(path.read_text()) for path in sorted((out / "cells").rglob("*.json"))}


@pytest.mark.slow
def test_processes_compute_the_same_bits(executor, expected, tmp_path):
    out = tmp_path / "out"
    lab.run(NAME, preset="tiny", out=out, executor=executor)
    assert (out / "metrics.json").read_bytes() == expected
    assert len(cells_of(out)) > 2


@pytest.mark.slow
def test_ray_computes_the_same_bits(expected, tmp_path):
    pytest.importorskip("ray")
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "ggpi",
        "run",
        NAME,
        "--preset",
        "tiny",
        "--on",
        "ray",
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert (out / "metrics.json").read_bytes() == expected


@pytest.mark.parametrize("is_local_first", [True, False])
def test_a_run_is_finished_elsewhere(is_local_first, executor, expected, tmp_path):
    """Cells that are there are kept; those that are missing are computed by the other executor."""
    out, places = tmp_path / "out", [cluster.local(), executor]
    first, second = places if is_local_first else places[::-1]
    lab.run(NAME, preset="tiny", out=out, executor=first)
    before = cells_of(out)
    lost = list(before)[::2]
    for path in lost:
        path.unlink()
    lab.run(NAME, preset="tiny", out=out, executor=second)
    after = cells_of(out)
    kept = before.keys() - set(lost)
    assert all(after[path] == before[path] for path in kept)
    assert {path: cell["result"] for path, cell in after.items()} == {
        p: c["result"] for p, c in before.items()
    }
    assert (out / "metrics.json").read_bytes() == expected


def test_the_command_names_a_cell_that_fails(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise ValueError("no such world")

    monkeypatch.setattr("ggpi.lab.finite.chain.improvement_table", fail)
    assert main(["run", "chain", "--preset", "tiny", "--out", str(tmp_path / "out")]) == 2
    assert "ggpi: task table: ValueError: no such world" in capsys.readouterr().err


def test_a_fault_of_the_code_keeps_its_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr("ggpi.lab.finite.chain.improvement_table", lambda *_: {}["missing"])
    with pytest.raises(cluster.TaskError, match="task table: KeyError"):
        main(["run", "chain", "--preset", "tiny", "--out", str(tmp_path / "out")])


def test_wrong_places_are_named(tmp_path, capsys):
    assert main(["run", "chain", "--on", "mars", "--out", str(tmp_path / "out")]) == 2
    assert "no executor is called 'mars': use local, processes:N, ray" in capsys.readouterr().err


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", lab.EXPERIMENTS)
def test_cells_can_be_sent_to_other_processes(name):
    """The first cells of every experiment; those that depend on their results are made in the same way."""

    def sent(tasks):
        for task in tasks.values():
            pickle.loads(pickle.dumps(task))
        raise Stop

    with pytest.raises(Stop):
        contract.experiment(name).run(contract.config_of(name, "tiny"), sent)
