"""Settings of the closed loop in mazes at their smallest size."""

import pytest

pytest.importorskip("gymnasium_robotics")

from ggpi.lab.maze import graph_settings, graph_settings_figure


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.slow
def test_every_setting_has_a_row():
    metrics = graph_settings.run(graph_settings.PRESETS["tiny"])
    found = [(row["group"], row["setting"]) for row in metrics["rows"]]
    assert found == [
        ("landmarks", "20"),
        ("jumps", "2"),
        ("training", "20"),
        ("alpha", "0.1"),
        ("alpha", "0.3"),
        ("plans", "0.1"),
        ("plans", "0.3"),
        ("plans", "0.1 to 0.3"),
    ]
    assert all(0 <= row["success"]["mean"] <= 1 for row in metrics["rows"])
    assert graph_settings_figure.table(metrics)[0].row_count == 8
    assert len(graph_settings_figure.plot(metrics).axes) == 5
