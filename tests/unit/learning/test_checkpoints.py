"""Checkpoints and metrics that were damaged raise `FileError` and name the field."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import saved_files
from ggpi.cli.main import main
from ggpi.learning.log import TrainingLog

STATE = {"weights": jnp.ones((2, 3)), "moments": jnp.zeros(3)}


def logged(folder):
    log = TrainingLog(folder, "mine")
    log.checkpoint(STATE, 20, is_last=True)
    log.write(10, np.ones(1), np.ones(1), 1.0)
    return log


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays, about: about.pop("step"), "step: expected a number of steps, got None"),
        (lambda arrays, about: about.update(step="x"), "step: expected"),
        (lambda arrays, about: about.update(step=-1), "step: expected"),
        (lambda arrays, about: arrays.pop("00001"), "array 1: expected .* got nothing"),
        (lambda arrays, about: arrays.update(x=np.ones(1)), "array 2: expected nothing"),
        (lambda arrays, about: arrays.update({"00000": np.ones(3)}), "array 0: expected"),
        (lambda arrays, about: arrays.update({"00001": np.zeros((2, 3), int)}), "array 1: expected"),
    ],
)
def test_a_changed_checkpoint(tmp_path, change, words):
    log = logged(tmp_path)
    assert log.resume(STATE, 20)[1] == 20
    arrays, index = saved_files.read(tmp_path / "checkpoint")
    change(arrays, index["about"])
    saved_files.write(tmp_path / "checkpoint", arrays, index)
    with pytest.raises(ggpi.FileError, match=words):
        log.resume(STATE, 20)


@pytest.mark.parametrize("line", ["{}", "{3}", '{"step": "x"}', "[" * 9999 + "}", "\udcff}"])
def test_changed_metrics(tmp_path, line):
    log = logged(tmp_path)
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ggpi.FileError, match=r"metrics\.jsonl"):
        log.resume(STATE, 20)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("metrics.json", {}, "metrics.json: these are not the numbers of four-rooms-transfer: KeyError"),
        ("config.json", {"experiment": 3}, "config.json: experiment: expected str, got 3"),
        ("config.json", {"config": []}, "config.json: config: expected dict"),
    ],
)
def test_changed_results(tmp_path, capsys, file, content, words):
    about = {"experiment": "four-rooms-transfer", "config": {}, "versions": {}, "code": ""}
    for name, held in (("config.json", about), ("metrics.json", {})):
        held = held | content if name == file else held
        (tmp_path / name).write_text(json.dumps(held))
    assert main(["plot", str(tmp_path)]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
