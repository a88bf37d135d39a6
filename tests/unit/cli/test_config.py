"""Fields of an experiment's config as options."""

import argparse
import dataclasses
import re
from typing import Literal

import pytest

from ggpi.cli.config import add_fields, read_config
from ggpi.cli.main import main


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
    config = read_config("ggpi run dummy", dummy.PRESETS["paper"], ["--numbers", "5", "6", "--gamma", "1/3"])
    assert config == dummy.Config(numbers=(5, 6), gamma=1 / 3)


def test_help_shows_the_fields(dummy, capsys):
    assert main(["run", "dummy", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("usage: ggpi run NAME [options]") == 1 == shown.count("usage")
    assert all(words in shown for words in ("--preset P", "--gamma X", "Discount γ.", "default: 1 2 3"))


def test_help_says_what_is_required(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["fit", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: ggpi fit --env ID --policies FILE … [options]\n")
    options = re.split(r"\n  (?=-)", shown)
    assert [option.split()[0] for option in options if "(required)" in option] == ["--env", "--policies"]
    assert "(default: )" not in shown and "(default: None)" not in shown


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


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--kind", "b"], "kind", "b"),
        (["--kind", "None"], "kind", None),
        (["--pair", "3", "1/4"], "pair", (3, 0.25)),
        (["--pair=3", "1"], None, "expected 2 arguments"),
        (["--kind", "c"], None, "--kind: expected one of a, b, got 'c'"),
        (["--pair", "1.5", "1"], None, "--pair: expected a whole number, got '1.5'"),
        (["--pair", "1", "1/0"], None, "--pair: "),
        (["--loud"], "loud", True),
        (["--inner.depth", "-2"], "inner", Inner(-2)),
        (["--depth=5"], "inner", Inner(5)),
        (["--inner_depth", "2"], None, "unrecognised arguments: --inner-depth 2"),
    ],
)
def test_fields_are_read_as_their_types(words, field, value):
    arguments = ["--needed=7", *words]
    if field is None:
        with pytest.raises(ValueError, match=re.escape(value) + ".*; see odd --help"):
            read_config("odd", Odd, arguments)
    else:
        config = read_config("odd", Odd, arguments)
        assert config == dataclasses.replace(Odd(7), **{field: value})


def test_underscores_are_dashes(dummy):
    @dataclasses.dataclass(frozen=True)
    class Wide:
        num_samples: int = 3

    assert read_config("wide", Wide(4), ["--num_samples", "5"]) == Wide(5)
    assert read_config("wide", Wide(4), []) == Wide(4)


def test_the_last_part_of_a_name_is_enough_where_it_is_unique():
    @dataclasses.dataclass(frozen=True)
    class Two:
        left: Inner = Inner(1)
        right: Inner = Inner(2)

    assert read_config("two", Two(), ["--right.depth", "5"]) == Two(Inner(1), Inner(5))
    with pytest.raises(ValueError, match="unrecognised arguments: --depth"):
        read_config("two", Two(), ["--depth", "5"])


def test_fields_of_which_only_a_protocol_is_known():
    """A recipe's model and loss are any dataclass: options are those of the one that is there."""
    from ggpi.learning.recipe import CPU

    changed = read_config("ggpi", CPU, ["--steps", "7", "--loss.n-step", "3", "--width", "9"])
    loss, model = (dataclasses.replace(CPU.loss, n_step=3), dataclasses.replace(CPU.model, width=9))
    assert changed == dataclasses.replace(CPU, steps=7, loss=loss, model=model)
