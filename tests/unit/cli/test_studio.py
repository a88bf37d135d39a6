"""`ggpi studio`: which worlds the page has, and under which token."""

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the studio needs its extra: pip install '.[studio]'")
from ggpi.cli import studio
from ggpi.cli.main import main
from ggpi.studio import server


@pytest.fixture
def served(monkeypatch):
    """The worlds that would be served."""
    found = []
    monkeypatch.setattr(studio, "_serve", lambda server, options, worlds: found.append(list(worlds)))
    return found


def test_directories_come_first(served, capsys):
    assert main(["studio", "point-mass-ghms"]) == 0
    assert main(["studio", "--world", "ant"]) == 0
    assert main(["studio"]) == 0
    assert main(["studio", "point-mass-ghms", "--world", "ant"]) == 0
    assert [worlds[0] for worlds in served] == ["point-mass-ghms", "ant", "four-rooms", "ant"]
    assert "point-mass-ghms" in served[3]
    assert "four-rooms" in served[0] and len(set(served[1])) == len(served[1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere has no world.json"),
        (["--world", "mars"], "there is no world 'mars'"),
        (["--record", "a", "--replay", "b"], "give --record or --replay, not both"),
    ],
)
def test_complaints(served, capsys, arguments, words):
    assert main(["studio", *arguments]) == 2
    assert words in capsys.readouterr().err and not served


@pytest.mark.parametrize("arguments", [[], ["--no-open"]])
def test_the_first_line_is_the_address(monkeypatch, capsys, arguments):
    """With the port that the system chose and a new token; a browser opens it."""
    opened = []

    def serve(app, at, on_ready):
        on_ready(at.getsockname()[1])
        at.close()

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(studio, "_warm", lambda app: None)
    assert main(["studio", *arguments]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32,}", first)
    assert opened == ([] if "--no-open" in arguments else [first])


def test_a_port_that_is_taken_is_an_error(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with server.listening("127.0.0.1", 0) as taken:
        assert main(["studio", "--no-open", "--port", str(taken.getsockname()[1])]) == 2
    assert "see --host and --port" in capsys.readouterr().err


def test_directories_of_the_same_name_are_told_apart(tmp_path):
    places = [tmp_path / "small" / "fit", tmp_path / "large" / "fit", tmp_path / "other"]
    assert studio.named(places) == dict(zip(["small/fit", "large/fit", "other"], places, strict=True))
    assert studio.named([Path("a"), Path("a")]) == {"a": Path("a")}


def test_a_directory_hides_a_world_of_its_name(served, monkeypatch, tmp_path):
    monkeypatch.setattr("ggpi.studio.catalogue.directory", lambda place, name, env: lambda: place)
    assert main(["studio", str(tmp_path / "maze")]) == 0
    assert served[0][0] == "maze" and served[0].count("maze") == 1


def test_the_token_is_kept_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    token = studio.kept_token()
    assert len(token) >= 32 and studio.kept_token() == token
    file = tmp_path / "ggpi" / "studio-token"
    assert os.name != "posix" or file.stat().st_mode & 0o077 == 0
    file.write_text("short")
    assert len(studio.kept_token()) >= 32


def test_without_a_cache_every_token_is_new(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert studio.kept_token() != studio.kept_token()


def test_every_name_of_this_computer_is_known(monkeypatch):
    """Others name it as they reach it: the server rejects names that it does not know."""
    monkeypatch.setattr("socket.gethostname", lambda: "Desk")
    monkeypatch.setattr("socket.gethostbyname_ex", lambda name: (name, ["desk.lan"], ["192.168.1.5"]))
    assert studio.names_of("0.0.0.0") == ["desk", "desk.lan", "192.168.1.5"]
    assert studio.names_of("192.168.1.5") == ["192.168.1.5"]


def test_a_recording_that_cannot_be_written_or_read_is_an_error(capsys, tmp_path):
    for option, path in (
        ("--record", tmp_path / "nowhere" / "run.jsonl"),
        ("--replay", tmp_path / "missing.jsonl"),
        ("--record", tmp_path),
    ):
        assert main(["studio", "--no-open", option, str(path)]) == 2
        said = capsys.readouterr()
        assert str(path) in said.err and "Traceback" not in said.err and not said.out


@pytest.mark.parametrize(("host", "is_open"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_a_page_that_others_can_reach_is_warned_of(monkeypatch, capsys, host, is_open):
    monkeypatch.setattr(server, "serve", lambda app, at, on_ready: at.close())
    assert main(["studio", "--no-open", "--host", host]) == 0
    assert ("others can reach this page" in capsys.readouterr().err) == is_open
