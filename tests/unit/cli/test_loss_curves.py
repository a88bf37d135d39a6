"""The picture of a fit's losses, of a finished fit and of one that was stopped."""

import json

import numpy as np
import pytest

from ggpi.cli import loss_curves
from ggpi.learning.log import Report

ROWS = [
    {"step": step, "loss": [4.0, 3.0, 2.0, 1.0], "held_out": [8.0, 6.0, 4.0, step / 250]}
    for step in (250, 500, 750)
]


def write(folder, rows):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_panel_for_each_horizon_and_a_line_for_each_policy():
    canvas = loss_curves.picture(ROWS, ["swing", "hold"], [0.9, 0.8], size=2)
    left, right = canvas.axes
    assert [ax.get_title() for ax in (left, right)] == ["horizon 0.9", "horizon 0.8"]
    lines = {line.get_label(): line for line in right.lines}
    np.testing.assert_array_equal(lines["hold"].get_xydata(), [(250, 0.5), (500, 1.0), (750, 1.5)])
    np.testing.assert_array_equal(lines["swing"].get_ydata(), [2.0, 2.0, 2.0])
    assert any(np.allclose(line.get_ydata(), loss_curves.KNOWING_NOTHING) for line in left.lines)


def test_a_fit_that_is_stopped_leaves_its_picture(tmp_path):
    with pytest.raises(KeyboardInterrupt), loss_curves.drawing(tmp_path, ["swing", "hold"], [0.9, 0.8], 2):
        write(tmp_path, ROWS[:1])
        raise KeyboardInterrupt
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_drawn_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(loss_curves, "EVERY", -1.0)
    with loss_curves.drawing(tmp_path, ["swing", "hold"], [0.9, 0.8], 2) as callback:
        report = Report(0, None, (), None, None, 0.0, tmp_path)
        callback(report)
        assert not list(tmp_path.iterdir()), "there is nothing to draw yet"
        write(tmp_path, ROWS)
        callback(report)
        assert (tmp_path / "losses.png").exists()
