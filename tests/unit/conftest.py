from pathlib import Path

import pytest


@pytest.fixture
def dummy(monkeypatch, tmp_path):
    """The dummy experiment, registered and fresh; the working directory is empty."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "lab")
    monkeypatch.chdir(tmp_path)
    import dummy

    from ggpi.lab import EXPERIMENTS

    monkeypatch.setitem(EXPERIMENTS, "dummy", ("dummy", "squares of numbers"))
    monkeypatch.setattr(dummy, "CALLS", [])
    monkeypatch.setattr(dummy, "STOP_AT", [])
    return dummy
