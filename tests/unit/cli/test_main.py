"""The command line: light, and every complaint is one clear line."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

import ggpi
from ggpi.cli import equations
from ggpi.cli.main import COMMANDS, main, use_compilation_cache
from ggpi.lab import EXPERIMENTS


def complaint(capsys, *arguments):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


IMPORTED = "import sys; before = set(sys.modules)\n{}\nprint(*(sys.modules.keys() - before))"


def imported(code):
    """Names of the modules that some code imports, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(code)], check=True, capture_output=True, text=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["eq", "3.2"]])
def test_light_commands_import_nothing_heavy(arguments):
    """Nothing but ggpi's own few modules and the standard library, of which `asyncio` alone would be 50 modules.

    benchmarks/help_text.py says how long they take.
    """
    found = imported(
        f"import contextlib; from ggpi.cli.main import main\nwith contextlib.suppress(SystemExit): main({arguments})"
    )
    foreign = {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"ggpi"}
    assert not foreign
    assert len(found) < 200, "135 of ggpi and the standard library are enough on Python 3.11"


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"ggpi {ggpi.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_has_one_style(capsys, command):
    """What is required, then [options]."""
    with contextlib.suppress(SystemExit):
        main([command, "--help"])
    usage, *_ = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"usage: ggpi {command}[^[]*( \[options\])?", usage)


def test_list_names_all(capsys):
    assert main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


def test_a_reader_that_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "ggpi", "list"]
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "")


def test_bad_names_list_the_nearest_first(capsys):
    line = complaint(capsys, "run", "chian")
    assert "'chian'" in line and line.split("are: ")[1].startswith("chain, ")
    assert all(name in line for name in EXPERIMENTS)
    assert "no name given" in complaint(capsys, "run")


@pytest.mark.parametrize("arguments", [[], ["dance"], ["list", "more"], ["plot"], ["eq"], ["--fast"]])
def test_bad_commands(capsys, arguments):
    assert "see ggpi" in complaint(capsys, *arguments)


@pytest.mark.parametrize(
    "query, ids",
    [
        ("3.2", ["Thm 3.2"]),
        ("Thm 3.2", ["Thm 3.2"]),
        ("theorem 3.2", ["Thm 3.2"]),
        ("eq6", ["Eq 6"]),
        ("Eq. (6)", ["Eq 6"]),
        ("6", ["Eq 6", "Fig 6"]),
        ("Figure 3", ["Fig 3"]),
        ("alg 1", ["Alg 1"]),
        ("Example d.4", ["Ex D.4"]),
        ("table 1", ["Table 1"]),
    ],
)
def test_eq_finds(query, ids):
    assert [item["id"] for item in equations.find(query)] == ids


def test_eq_describes_every_item_it_finds(capsys):
    assert main(["eq", "6"]) == 0
    heads = [block.split(":")[0] for block in capsys.readouterr().out.split("\n\n")]
    assert heads == ["Eq 6", "Fig 6"]


@pytest.mark.parametrize("query", ["9.9", "eq 3.2", "nonsense", "prop 3.2"])
def test_eq_says_what_there_is(capsys, query):
    line = complaint(capsys, "eq", query)
    assert repr(query) in line and "Thm 3.2" in line


def test_eq_gives_file_and_line(capsys):
    main(["eq", "Thm 3.2"])
    assert re.search(r"evaluation.*\.py:\d+  ggpi\.evaluation\S*\.evaluate\n", capsys.readouterr().out)
    main(["eq", "Eq 10"])
    assert "not in code: a step of a proof" in capsys.readouterr().out


def test_the_compilation_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "chosen")
    use_compilation_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "chosen"
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    use_compilation_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "ggpi" / "jax")


def test_an_environment_may_lie_in_a_file_here(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "pond_of_a_test.py").write_text("raise ValueError('found')")
    assert "found" in complaint(capsys, "fit", "--env", "pond_of_a_test:Boat-v0", "--policies", "a.zip")


@pytest.mark.parametrize(
    ("module", "data"),
    [("minari", "ggpi/walk-v0"), ("h5py", "walk.hdf5")],
)
def test_extras_that_are_not_installed(capsys, monkeypatch, tmp_path, module, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walk.hdf5").write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)  # what Python takes for a module that is not there
    mdp = ggpi.envs.four_rooms()
    ggpi.save("models", ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.constant(mdp, 0)], 0.9, 0.5))
    assert "pip install '.[data]'" in complaint(capsys, "diagnose", "models", "--data", data)
