"""`ggpi diagnose`: from saved models to a table, a picture and numbers; complaints are one clear line."""

import json

import jax
import numpy as np
import pytest

import ggpi
from ggpi._jax.batching import stack
from ggpi.cli import diagnose_figure as model_picture
from ggpi.cli import diagnose_report as model_report
from ggpi.cli.diagnose_figure import Panel
from ggpi.cli.main import main
from ggpi.data import write_npz
from ggpi.envs import PointMass
from ggpi.ghm import GHMs
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.lab import style
from ggpi.policies.linear import direction_policies


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setattr("ggpi.diagnosis.truth.VISITED", 512)
    monkeypatch.setattr(model_picture, "SHOWN", 50)
    policies = direction_policies()[:2]
    data = ggpi.collect("ggpi/PointMass-v0", policies, 1200)
    frame = fit_frame(data.state, data.action, data.next_state, PointMass.spec, None)
    keys = jax.random.split(jax.random.key(0), 2)
    vaes = stack([VAEConfig(width=8, depth=1).build(frame, key=key) for key in keys])
    ghms = GHMs(tuple(policies), 0.8, (0.5,), (vaes, vaes))
    ggpi.save(tmp_path / "run" / "models", ghms)
    write_npz(tmp_path / "data.npz", data)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("truth", [["--env", "ggpi/PointMass-v0"], ["--data", "data.npz"]])
def test_from_saved_models_to_a_table(saved, monkeypatch, capsys, truth):
    monkeypatch.chdir(saved)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["diagnose", "run", *truth]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("right", "up", "0.8", "0.4", "energy", "horizons", "−ELBO"))
    assert "…" not in printed, "80 columns are enough"
    folder = saved / "results" / "diagnose-run"
    numbers = json.loads((folder / "metrics.json").read_text())
    assert numbers["up"]["0.4"]["energy"] > numbers["up"]["0.4"]["energy_floor"]
    assert numbers["up"]["0.4"]["verdict"] == "bad", "models that were never trained"
    assert numbers["up"]["0.4"]["why"][0].split()[0] in printed.split("Verdict")[1]
    assert (folder / "figure.png").stat().st_size > 10_000


@pytest.mark.slow
def test_beside_a_teacher(saved, monkeypatch, capsys):
    monkeypatch.chdir(saved)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["diagnose", "run", "--data", "data.npz", "--teacher", "run"]) == 0
    assert "to its teacher" in capsys.readouterr().out
    numbers = json.loads((saved / "results" / "diagnose-run" / "metrics.json").read_text())["up"]["0.4"]
    assert abs(numbers["teacher_energy"]) < 0.1 * numbers["energy_of_teacher"], "its own teacher"


def test_complaints(saved, monkeypatch, capsys):
    monkeypatch.chdir(saved)
    assert main(["diagnose", "run", "--env", "Pendulum-v1", "--teacher", "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err
    assert main(["diagnose", "run"]) == 2
    assert "--env ID or --data" in capsys.readouterr().err
    assert main(["diagnose", "nowhere", "--env", "Pendulum-v1"]) == 2
    assert "nowhere" in capsys.readouterr().err
    ggpi.save(saved / "other", direction_policies()[0])
    assert main(["diagnose", "other", "--env", "Pendulum-v1"]) == 2
    assert "holds a LinearPolicy" in capsys.readouterr().err


def test_one_dimension_is_drawn_as_a_histogram():
    rng = np.random.default_rng(0)
    shown = Panel(np.zeros(1), *rng.normal(size=(2, 50, 1)), np.ones(1), False)
    _, axes = style.figure()
    model_picture.draw_panel(axes[0, 0], shown, model_picture.worst_coordinates([shown]), ["angle"])
    assert len(axes[0, 0].patches) == 40, "39 bars and an outline"
    assert axes[0, 0].get_xlabel() == "angle"


def test_coordinates_are_those_where_models_are_worst_and_named():
    """Coordinates 1 and 3 are wrong; 2, where the truth stands still, only by a hair."""
    true = np.random.default_rng(0).normal(size=(100, 4)) * [1, 1, 0, 1]
    ours = true + [0, 2, 0, 3] + 0.001 * np.ones(4)
    shown = Panel(np.zeros(4), ours, true, np.array([1, 1, 0.1, 1]), False)
    assert model_picture.worst_coordinates([shown]) == [1, 3]
    _, axes = style.figure()
    ax = axes[0, 0]
    model_picture.draw_panel(ax, shown, [1, 3], ["cos", "sin"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect()) == ("cos", "sin", 1.0)
    samples, truth = ax.collections
    assert truth.get_zorder() > samples.get_zorder() and truth.get_label() == "truth"
    model_picture.draw_panel(axes[0, 0], shown._replace(is_change=True), [1, 3], ["x", "vx"])
    assert ax.get_xlabel() == "change of x"


def test_units_by_names():
    assert model_picture.same_unit("y", "x") and model_picture.same_unit("cos2", "sin2")
    for one, two in (("x", "vx"), ("cos1", "sin2"), ("position", "angle"), ("cos", "cosine")):
        assert not model_picture.same_unit(one, two)


def test_a_fit_that_is_not_finished_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"holds no models; expected a directory that ggpi fit"):
        model_report.read_models(tmp_path)
    (tmp_path / "world.json").write_text("{}")
    with pytest.raises(ValueError, match=r"a fit that is not finished: give the same command again"):
        model_report.read_models(tmp_path)
