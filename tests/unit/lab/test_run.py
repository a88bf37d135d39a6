"""`ggpi.lab.run`: the library call behind `ggpi run`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ggpi.lab
from ggpi.cli.main import main
from ggpi.lab import FILMS, contract
from ggpi.lab.finite import chain


def test_interrupted_runs_resume_with_the_same_numbers(tmp_path, monkeypatch):
    """Ctrl-C after the second cell; the cells that were finished are not computed again."""
    whole = ggpi.lab.run("chain", preset="tiny", out=tmp_path / "whole")
    computed, count_steps = [], chain.count_steps

    def interrupted(config, k):
        if k == 3:
            raise KeyboardInterrupt
        return count_steps(config, k)

    def counted(config, k):
        computed.append(k)
        return count_steps(config, k)

    monkeypatch.setattr(chain, "count_steps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ggpi.lab.run("chain", preset="tiny", out=tmp_path / "parts")
    assert not (tmp_path / "parts" / "metrics.json").exists()
    monkeypatch.setattr(chain, "count_steps", counted)
    resumed = ggpi.lab.run("chain", preset="tiny", out=tmp_path / "parts")
    assert computed == [3, 5], "k = 2 was finished"
    assert resumed == whole == json.loads((tmp_path / "parts" / "metrics.json").read_text())
    assert (tmp_path / "parts" / "figure.png").exists()


PATH = os.pathsep.join([str(Path(__file__).parent), str(Path(ggpi.lab.__file__).parents[2])])
KILLED = """
import os, dummy, ggpi.lab
from ggpi.lab import EXPERIMENTS
EXPERIMENTS["dummy"] = ("dummy", "")
square = dummy.square
dummy.square = lambda n: os._exit(9) if n == 3 else square(n)
ggpi.lab.run("dummy", out="out")
"""


def test_killed_runs_resume(dummy):
    done = subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": PATH})
    assert done.returncode == 9 and Path("out/cells/squares/n-2.json").exists()
    assert ggpi.lab.run("dummy", out="out") == {"gamma": 0.9, "squares": [1, 4, 9]}
    assert dummy.CALLS == [3]


def test_cells_of_edited_code_are_computed_again(dummy, tmp_path, monkeypatch):
    """An edit of the experiment counts, one of its figure does not."""
    here = Path(__file__).parent
    for name in ("dummy", "dummy_figure"):
        (tmp_path / f"own_{name}.py").write_text((here / f"{name}.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(ggpi.lab.EXPERIMENTS, "own", ("own_dummy", ""))
    ggpi.lab.run("own", out="out")
    import own_dummy

    for edited, computed in (("own_dummy_figure", 3), ("own_dummy", 6)):
        with (tmp_path / f"{edited}.py").open("a") as file:
            file.write("# edited")
        ggpi.lab.run("own", out="out")
        assert len(own_dummy.CALLS) == computed


def test_the_directory_is_that_of_the_command(dummy):
    metrics = ggpi.lab.run("dummy", preset="tiny", seed=7)
    assert json.loads(Path("results/dummy-tiny-seed7/metrics.json").read_text()) == metrics
    assert main(["run", "dummy", "--preset", "tiny", "--seed", "7"]) == 0
    assert dummy.CALLS == [1, 2], "the command found the finished cells"


def test_a_config_of_ones_own(dummy):
    assert ggpi.lab.run("dummy", dummy.Config(seed=2, numbers=(5,)), out="out")["squares"] == [25]
    assert json.loads(Path("out/config.json").read_text())["config"]["seed"] == 2
    with pytest.raises(ValueError, match=r"holds results of dummy with seed=2 \(now 0\), numbers"):
        ggpi.lab.run("dummy", out="out")
    assert ggpi.lab.run("dummy", out="out", force=True)["squares"] == [1, 4, 9]


def test_other_configs_and_names_raise(dummy, tmp_path):
    with pytest.raises(TypeError, match=r"config is a dummy\.Config"):
        ggpi.lab.run("dummy", chain.Config(), out=tmp_path / "out")
    with pytest.raises(ValueError, match="no experiment is called 'chian'; the experiments are: chain, "):
        ggpi.lab.run("chian")
    with pytest.raises(ValueError, match="no preset is called 'huge'; the presets are: "):
        ggpi.lab.run("dummy", preset="huge")
    assert not list(tmp_path.iterdir())


def test_films_are_written_or_missed(dummy, monkeypatch):
    import dummy_figure
    import numpy as np

    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr(ggpi.lab.contract, "FILMS", ("dummy",))
    pictures = [np.zeros((64, 64, 3), np.uint8)] * 2
    monkeypatch.setattr(dummy_figure, "film", lambda config, metrics: pictures, raising=False)
    ggpi.lab.run("dummy", out="out")
    assert Path("out/film.mp4").stat().st_size > 0

    def no_display(config, metrics):
        raise RuntimeError("no display")

    monkeypatch.setattr(dummy_figure, "film", no_display)
    with pytest.warns(UserWarning, match="no film: no display"):
        assert ggpi.lab.run("dummy", out="other")["squares"] == [1, 4, 9]
    assert not Path("other/film.mp4").exists()


def test_those_with_a_film_are_listed():
    pytest.importorskip("mujoco")
    for name in ggpi.lab.EXPERIMENTS:
        assert (name in FILMS) == ("film" in vars(contract.figure_of(name)))


def test_the_lab_is_light():
    script = "import sys; import ggpi.lab; print('jax' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False False\n"
