"""`ggpi diagnose`: from saved models to a table, a picture and numbers; complaints are one clear line."""

import json

import jax
import numpy as np
import pytest

import ggpi
from ggpi.cli import main
from ggpi.data import write_npz
from ggpi.envs import PointMass
from ggpi.ghm import GHMs
from ggpi.ghm.frame import fit_frame, stack_modules
from ggpi.ghm.vae import VAEConfig
from ggpi.lab import model_report
from ggpi.policies.linear import direction_policies


@pytest.fixture
def saved(tmp_path):
    policies = direction_policies()[:2]
    data = ggpi.collect("ggpi/PointMass-v0", policies, 1200)
    frame = fit_frame(data.state, data.action, data.next_state, PointMass.spec, None)
    keys = jax.random.split(jax.random.key(0), 2)
    vaes = stack_modules([VAEConfig(width=8, depth=1).build(frame, key=key) for key in keys])
    ghms = GHMs(tuple(policies), 0.8, (0.5,), {0.8: vaes, 0.4: vaes})
    ggpi.save(tmp_path / "run" / "models", ghms)
    write_npz(tmp_path / "data.npz", data)
    return tmp_path


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
    assert (folder / "figure.png").stat().st_size > 10_000


def test_complaints(saved, monkeypatch, capsys):
    monkeypatch.chdir(saved)
    assert main(["diagnose", "run"]) == 2
    assert "--env ID or --data" in capsys.readouterr().err
    assert main(["diagnose", "nowhere", "--env", "Pendulum-v1"]) == 2
    assert "nowhere" in capsys.readouterr().err
    ggpi.save(saved / "other", direction_policies()[0])
    assert main(["diagnose", "other", "--env", "Pendulum-v1"]) == 2
    assert "holds a LinearPolicy" in capsys.readouterr().err


def test_one_dimension_is_drawn_as_a_histogram():
    from ggpi.diagnosis import Truth
    from ggpi.lab import style

    rng = np.random.default_rng(0)
    truth = Truth(np.zeros((1, 1)), np.zeros((1, 1)), *rng.normal(size=(2, 1, 50, 1)))
    _, axes = style.figure()
    model_report._panel(axes[0, 0], truth, truth.again)
    assert len(axes[0, 0].patches) == 78


def test_a_fit_that_is_not_finished_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"holds no models; expected a directory that ggpi fit"):
        model_report.read_models(tmp_path)
    (tmp_path / "world.json").write_text("{}")
    with pytest.raises(ValueError, match=r"a fit that is not finished: give the same command again"):
        model_report.read_models(tmp_path)
