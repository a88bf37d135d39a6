"""Fields of an experiment's config as options."""

import argparse
import dataclasses
from typing import Literal

import pytest

from ggpi.cli import main, read_config
from ggpi.config_help import add_fields


@dataclasses.dataclass(frozen=True)
class Inner:
    """A part of a config."""

    depth: int = 3
    """How deep."""


@pytest.mark.parametrize(
    "options, message",
    [
        (["--gama", ".9"], "--gama"),
        (["--gamma", "x"], "expected a number, got 'x'"),
        (["--gamma"], "--gamma"),
        (["--gamma", "1.5"], "gamma is 1.5, expected 0 ≤ gamma < 1"),
        (["--preset", "huge"], "no preset is called 'huge'; the presets are: "),
        (["stray"], "stray"),
    ],
)
def test_bad_options_are_one_line(dummy, capsys, options, message):
    assert main(["run", "dummy", *options]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert message in line and captured.out == ""


def test_options_change_fields(dummy):
    config = read_config("ggpi run dummy", dummy.Config.paper(), ["--numbers", "5", "6", "--gamma", "1/3"])
    assert config == dummy.Config(numbers=(5, 6), gamma=1 / 3)


def test_help_shows_the_fields(dummy, capsys):
    assert main(["run", "dummy", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("usage: ggpi run NAME [options]") == 1 == shown.count("usage")
    assert all(words in shown for words in ("--preset P", "--gamma X", "Discount γ.", "default: 1 2 3"))


def test_help_says_what_is_required(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["fit", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "usage: ggpi fit --env ID --policies FILE … [options]"
    required = [line.split()[0] for line in lines if line.endswith("(required)")]
    assert required == ["--env", "--policies"]
    assert not any(line.endswith(("(default: )", "(default: None)")) for line in lines)


@dataclasses.dataclass(frozen=True)
class Odd:
    """A config with all that a field may be."""

    needed: int
    """Share in %."""
    pair: tuple[int, float] = (1, 2.5)
    kind: Literal["a", "b"] | None = None
    """Over
    two lines."""
    loud: bool = False
    inner: Inner = Inner()


def test_fields_of_every_kind(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    parser = argparse.ArgumentParser(prog="odd")
    add_fields(parser, "fields", Odd)
    shown = " ".join(parser.format_help().split())
    for words in (
        "--needed N Share in %. (required)",
        "--pair N X (default: 1 2.5)",
        "--kind {a,b} Over two lines.",
        "--loud, --no-loud (default: False)",
        "--inner.depth N How deep. (default: 3)",
    ):
        assert words in shown
    assert read_config("odd", Odd, ["--needed", "1", "--inner.depth", "4"]).inner.depth == 4
    with pytest.raises(ValueError, match="odd needs --needed; see odd --help"):
        read_config("odd", Odd, ["--pair", "1", "2"])
