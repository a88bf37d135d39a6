"""Fields of an experiment's config as options."""

import pytest

from ggpi.cli import main, read_config


@pytest.mark.parametrize(
    "options, message",
    [
        (["--gama", ".9"], "--gama"),
        (["--gamma", "x"], "could not convert string to float: 'x'"),
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
    with pytest.raises(SystemExit) as end:
        main(["run", "dummy", "--help"])
    shown = capsys.readouterr().out
    assert end.value.code == 0
    assert all(words in shown for words in ("--preset", "--gamma FLOAT", "Discount γ.", "default: 1 2 3"))
