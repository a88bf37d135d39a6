"""Progress: something is said before the first report, in terminals and in logs."""

import io
import re
import time
from contextlib import redirect_stderr

import pytest

from ggpi import progress as module
from ggpi.progress import progress, reported, waiting


class Terminal(io.StringIO):
    """A screen that remembers all that was ever on it."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


@pytest.fixture
def log():
    return io.StringIO()


def wait_for(words, stream):
    """Until another thread has written the words, or for at least ten minutes."""
    for _ in range(60_000):
        if words in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", stream.getvalue()):
            return
        time.sleep(0.01)
    raise AssertionError(f"{words!r} is not in {stream.getvalue()!r}")


def test_a_bar_appears_before_the_first_report(terminal, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with redirect_stderr(terminal), progress(10, "fit") as advance:
        wait_for("compiling…", terminal)
        advance(5, "loss [b]1.2")
        wait_for("loss [b]1.2", terminal)
        wait_for("5/10", terminal)


def test_quick_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 1e6)
    with redirect_stderr(terminal), progress(10, "fit") as advance:
        advance(10, "done")
    assert terminal.getvalue() == ""


def test_a_bar_ends_with_its_work(terminal, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with pytest.raises(ZeroDivisionError), redirect_stderr(terminal), progress(10, "fit"):
        wait_for("compiling…", terminal)
        _ = 1 / 0
    last = terminal.getvalue()
    time.sleep(0.3)  # a bar that was left alone would be drawn ten times a second
    assert terminal.getvalue() == last


def test_lines_in_a_log(log, monkeypatch):
    monkeypatch.setattr(module, "FIRST_LINE", 0.0)
    monkeypatch.setattr(module, "EVERY", 0.0)
    with redirect_stderr(log), progress(10, "fit") as advance:
        wait_for("\n", log)
        advance(0, "resumed")
        advance(5, "loss 1.2")
        advance(10, "loss 1.1")
    first, resumed, half, whole, last = log.getvalue().splitlines()
    assert first.startswith("fit: 0/10, compiling…, ") and resumed.startswith("fit: 0/10, resumed, ")
    assert half.startswith("fit: 5/10, loss 1.2, ") and half.endswith(" left")
    assert whole.startswith("fit: 10/10, loss 1.1, took ") and last.startswith("fit: 10/10")


def test_a_log_gets_few_lines(log, monkeypatch):
    monkeypatch.setattr(module, "FIRST_LINE", 0.0)
    monkeypatch.setattr(module, "EVERY", 1e6)
    with redirect_stderr(log), progress(1000, "fit") as advance:
        wait_for("\n", log)
        for done in range(1000):
            advance(done + 1, "")
    assert len(log.getvalue().splitlines()) == 2, "the first one, and the last one"


def test_work_inside_of_work_is_said_in_its_line(log, monkeypatch):
    monkeypatch.setattr(module, "FIRST_LINE", 0.0)
    monkeypatch.setattr(module, "EVERY", 0.0)
    with redirect_stderr(log), progress(3, "run", "") as outer:
        wait_for("\n", log)
        outer(1, "cell-a")
        with progress(100, "fit") as inner:
            inner(50, "loss 1.2")
        outer(2, "cell-b")
    lines = log.getvalue().splitlines()
    assert [line.rpartition(", ")[0] for line in lines] == [
        "run: 0/3",
        "run: 1/3, cell-a",
        "run: 1/3, cell-a: fit 0/100, compiling…",
        "run: 1/3, cell-a: fit 50/100, loss 1.2",
        "run: 2/3, cell-b",
        "run: 2/3, cell-b",
    ]


def test_waiting_is_said_on_terminals_only_and_erased(terminal):
    with redirect_stderr(terminal), waiting("starting…"):
        assert terminal.getvalue() == "starting…"
    assert terminal.getvalue().endswith(f"\r{' ' * len('starting…')}\r")


def test_waiting_says_nothing_in_a_log(log):
    with redirect_stderr(log), waiting("starting…"):
        pass
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    "seconds, words", [(3, "3 s"), (99, "99 s"), (125, "2 min"), (5900, "98 min"), (9000, "2.5 h")]
)
def test_durations_in_words(seconds, words):
    assert module._duration(seconds) == words


def test_progress_can_be_reported(monkeypatch):
    """To the page of the studio, say; not more often than it can be read."""
    monkeypatch.setattr(module, "OFTEN", 0.0)
    lines = []
    with reported(lines.append), progress(10, "graph") as advance:
        advance(5, "landmarks")
    assert lines == ["graph 0/10, compiling…", "graph 5/10, landmarks"]
    monkeypatch.setattr(module, "OFTEN", 1e6)
    with reported(lines.append), progress(10, "graph") as advance:
        for done in range(10):
            advance(done, "")
    assert len(lines) == 3
