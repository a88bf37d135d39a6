"""The server: who may talk to it, what it says, and that nothing it is told breaks it."""

import asyncio
import json
import random
import socket
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.websockets import WebSocket, WebSocketState
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ggpi.studio import server
from ggpi.studio.catalogue import Catalogue, directory
from ggpi.studio.outbox import Outbox
from ggpi.studio.protocol import VERSION
from ggpi.studio.server import listening
from ggpi.studio.session import Session

from .conftest import PATIENCE, TOKEN, connected, running


def fetch(port, path, **headers):
    """Status, headers and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_health(port):
    status, _, body = fetch(port, "/health")
    assert status == 200 and json.loads(body)["status"] == "ok" and json.loads(body)["version"] == VERSION


def test_health_counts_what_the_server_keeps(port, client):
    client.open("four-rooms")
    found = json.loads(fetch(port, "/health")[2])
    assert found["agents"] >= 1 and found["programs"] >= 2


def test_the_page_needs_its_token(port):
    assert fetch(port, f"/?token={TOKEN}")[0] == 200
    for path in ("/", "/?token=", "/?token=wrong", f"/?token={TOKEN}x", f"/?token={TOKEN[:-1]}"):
        status, _, body = fetch(port, path)
        assert status == 403 and "whole address" in body


def test_every_answer_has_strict_headers(port):
    for path in (f"/?token={TOKEN}", "/", "/health", "/static/main.js", "/nothing"):
        _, headers, _ = fetch(port, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self';" in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[", "localhost.evil:80", "0x7f.1"]
)
def test_other_hosts_are_rejected(port, host):
    """A page of another site whose name leads here (DNS rebinding) names its own host."""
    assert fetch(port, f"/?token={TOKEN}", Host=host)[0] in (400, 421)


def test_local_names_are_known(port):
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]:80"):
        assert fetch(port, "/health", Host=host)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2f..%2f..%2fpyproject.toml",
        "/static//etc/passwd",
        "/static/vendor/../../server.py",
        "/etc/passwd",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_other_file_can_be_read(port, path):
    assert fetch(port, path)[0] in (400, 404, 405)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[", "https://localhost"]
)
def test_pages_of_other_sites_cannot_connect(port, origin):
    with pytest.raises(InvalidStatus), connected(port, origin=origin):
        pass


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x"])
def test_a_connection_needs_the_token(port, token):
    with pytest.raises(InvalidStatus), connected(port, token=token):
        pass


def test_a_world_opens_with_a_plan(client):
    about, moment = client.open("four-rooms")
    assert about["policies"] == ["left", "down", "right", "up"] and about["closed_loop"] and about["free"]
    assert moment["t"] == 0 and moment["count"] == 16 and moment["draws"] == 300 * 20
    chosen = [plan for plan in moment["plans"] if plan["chosen"]]
    assert len(chosen) == 1 and chosen[0] is moment["plans"][0]
    assert chosen[0]["value"] == max(plan["value"] for plan in moment["plans"])
    assert moment["places_array"].shape == (sum(node["count"] for node in moment["nodes"]), 2)


def test_steps_follow_the_plan(client):
    """Alone to the right, in a corridor: the agent gets there in eight steps."""
    client.open("four-rooms")
    client.send("change", formula="disc(11, 2, 0.6)", depth=1)
    places = [client.until("moment", lambda frame: frame["count"] == 4)["place"]]
    for t in range(1, 9):
        client.send("step")
        places.append(client.until("moment", lambda frame, t=t: frame["t"] == t)["place"])
    assert places == [[x, 2.0] for x in range(3, 12)]


def test_the_reward_is_met_and_counted(client):
    client.open("four-rooms")
    client.send("change", formula="disc(4, 2, 0.6)", depth=1)
    client.until("moment", lambda frame: frame["count"] == 4)
    client.send("step")
    moment = client.until("moment", lambda frame: frame["t"] == 1)
    assert moment["reached"] == 1 and moment["reward"] == 1 and moment["return"] == 1
    assert client.until("tally")["tally"] == [{"reached": 1, "episodes": 1}]


def test_mistakes_leave_the_old_settings(client):
    client.open("four-rooms")
    for wrong in ({"formula": "disc("}, {"planner": "magic"}, {"formula": "z"}):
        client.send("change", **wrong)
        assert client.until("error")["text"]
    client.send("change", samples=20)
    settings = client.until("settings")
    assert settings["formula"] == "disc(9, 7, 1.6)" and settings["planner"] == "exhaustive"


def test_the_agent_is_put_anywhere_but_into_walls(client):
    client.open("four-rooms")
    client.send("put", x=10.2, y=9.8)
    assert client.until("moment", lambda frame: frame["place"] != [3, 2])["place"] == [10, 10]
    client.send("put", x=6, y=6)
    assert "cannot be put" in client.until("error")["text"]


def test_two_agents_start_together(client):
    client.open("four-rooms")
    client.send("change", second=1)
    moments = {}
    while len(moments) < 2:
        frame = client.until("moment")
        moments[frame["agent"]] = frame
    assert moments[0]["place"] == moments[1]["place"] and moments[1]["count"] == 4


@pytest.mark.slow
def test_the_closed_loop_shows_values(client):
    client.open("four-rooms")
    client.send("change", depth=0)
    values = client.until("values", lambda frame: frame["arrays"])
    assert values["values_array"].shape == (104,) and np.isfinite(values["values_array"]).all()
    best = values["places_array"][values["values_array"].argmax()]
    assert np.hypot(*(best - (9, 7))) <= 4


@pytest.mark.slow
def test_the_ant_plans_in_the_closed_loop():
    """The graph is built when it is first needed, and the page is told how far it is."""
    pytest.importorskip("mujoco", reason="the ant needs MuJoCo")
    with running(worlds={"ant": directory("ant-ghms", "ant")}) as port, connected(port) as client:
        about, _ = client.open("ant")
        assert about["closed_loop"]
        client.send("change", depth=0)
        client.until("status", lambda frame: "jumpy graph" in frame["text"])
        values = client.until("values", lambda frame: frame["arrays"])
        best = values["places_array"][values["values_array"].argmax()]
        assert np.hypot(*(best - (2, 2))) < 2
        client.send("step")
        assert client.until("moment", lambda frame: frame["t"] == 1)["count"] == 4


def test_gamma_and_alpha_change_exact_models(client):
    client.open("four-rooms")
    client.send("change", gamma=0.95, alpha=0.2)
    settings = client.until("settings", lambda frame: frame["gamma"] == 0.95)
    assert settings["alpha"] == 0.2 and "gamma=0.95, alpha=0.2" in settings["python"]


@pytest.mark.slow
def test_learned_models_have_one_gamma(client):
    about, _ = client.open("point-mass")
    assert not about["free"]
    client.send("change", gamma=0.5)
    assert "γ = 0.95" in client.until("error")["text"]


def test_a_moment_is_explained(client):
    """In four rooms the truth is exact: sampled values lie within five standard errors, at 12 plans (2e-5 in all, if
    samples were new in each run; their seed is fixed)."""
    client.open("four-rooms")
    client.send("change", formula="disc(4, 2, 0.6)")
    client.until("moment", lambda frame: frame["plans"][0]["value"] > 1)
    client.send("explain", agent=0, t=0)
    found = client.until("explained")
    assert found["truth"] == "exact" and found["plans"][0]["chosen"] and found["plans"][0]["difference"] == 0
    for plan in found["plans"]:
        error = 10 / np.sqrt(found["samples"])
        assert abs(plan["value"] - plan["true"]) < 5 * error


def test_a_moment_that_was_not_is_an_error(client):
    client.open("four-rooms")
    for fields in ({"agent": 1, "t": 0}, {"agent": 0, "t": 99}):
        client.send("explain", **fields)
        assert "no moment" in client.until("error")["text"]


def test_a_mistake_drops_no_other_message(client):
    """All of them wait at once, while the first is answered."""
    client.open("four-rooms")
    client.send("diagnose")
    client.send("reset")
    client.send("explain", agent=0, t=99)
    client.send("change", samples=40, speed=0)
    client.send("play")
    assert "no moment" in client.until("error")["text"]
    assert client.until("settings", lambda frame: frame["samples"] == 40)
    assert client.until("moment", lambda frame: frame["t"] > 1)


@pytest.mark.slow
def test_models_are_diagnosed(client):
    client.open("point-mass")
    client.send("diagnose")
    found = client.until("diagnosed")
    assert len(found["models"]) == 8 and found["places_array"].shape == (8, 2, 160, 2)
    assert {model["verdict"] for model in found["models"]} <= {"good", "usable", "bad"}


def test_exact_models_agree_with_simulation(client):
    """Means of 160 samples and futures; a cell is 1 wide, and spreads are at most 4: six standard errors are 2.7."""
    client.open("four-rooms")
    client.send("diagnose")
    found = client.until("diagnosed")
    assert {model["verdict"] for model in found["models"]} == {"exact"}
    samples, futures = found["places_array"].mean(axis=2).transpose(1, 0, 2)
    np.testing.assert_allclose(samples, futures, atol=2.7)


def test_messages_before_a_world_is_open(client):
    for kind in ("play", "pause"):
        client.send(kind)
    for kind, fields in (("change", {}), ("put", {"x": 0, "y": 0}), ("reset", {}), ("diagnose", {})):
        client.send(kind, **fields)
        assert "no world is open" in client.until("error")["text"]


def test_a_page_that_talks_too_much_is_closed(port):
    with connected(port) as client, pytest.raises(ConnectionClosed):
        for _ in range(2_000):
            client.send("pause")
        while True:
            client.next()


def test_messages_come_at_a_bounded_rate(monkeypatch):
    """While no time passes, as many as may come at once; the next one ends the connection."""
    said, heard = [], []

    async def receive():
        heard.append(1)
        return {"type": "websocket.receive", "text": '{"type": "pause"}'}

    async def send(message):
        said.append(message)

    async def talk():
        page = WebSocket({"type": "websocket"}, receive, send)
        page.client_state = page.application_state = WebSocketState.CONNECTED
        await server._received(page, Session(Catalogue({}), Outbox(asyncio.get_running_loop())))

    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: 7.0))
    asyncio.run(talk())
    assert len(heard) == server.BURST + 1
    assert [(message["code"], message["reason"]) for message in said] == [(1008, "too many messages")]


def test_a_message_that_is_too_long_ends_the_connection(port):
    with connected(port) as client, pytest.raises(ConnectionClosed):
        client.socket.send("x" * 20_000)
        while True:
            client.next()


def planners():
    return [thread for thread in threading.enumerate() if thread.name == "studio planner"]


def test_threads_end_with_their_pages():
    with running() as port:
        before = 0
        for thread in planners():  # those of other tests
            thread.join(PATIENCE)
        for _ in range(3):
            with connected(port) as client:
                client.open("four-rooms")
                client.send("change", speed=0)
                client.send("play")
                client.until("moment", lambda frame: frame["t"] > 2)
                assert len(planners()) == before + 1
            for thread in planners():
                thread.join(PATIENCE)
            assert len(planners()) == before
        assert json.loads(fetch(port, "/health")[2])["sessions"] == 0


@pytest.mark.slow
def test_a_page_that_does_not_read_slows_no_other(port):
    """Its frames are dropped: the other one sees its episode move on, and the queue stays short."""
    with connected(port, max_queue=1) as lazy, connected(port) as other:
        for client in (lazy, other):
            client.open("four-rooms")
            client.send("change", speed=0)
            client.send("play")
        assert other.until("moment", lambda frame: frame["t"] >= 200)


@pytest.mark.slow
def test_fuzzed_messages_never_break_a_session(client):
    """Texts near the protocol; at the end the session still answers. `tests/fuzz/studio.py` sends more."""
    rng = random.Random(0)
    client.open("four-rooms")
    words = [
        '{"type":',
        '"change"',
        '"open"',
        "}",
        "{",
        "[",
        "]",
        '"formula":',
        "1e999",
        "null",
        '"depth":',
        ",",
        '""',
        "-1",
    ]
    for i in range(300):
        client.socket.send("".join(rng.choices(words, k=rng.randrange(8))))
        if i % 50 == 49:
            time.sleep(1.0)  # within the rate
    client.send("change", samples=30)
    while client.next().get("samples") != 30:
        pass


def test_recordings_are_replayed(tmp_path):
    file = tmp_path / "run.jsonl"
    with running(record=file) as port, connected(port) as client:
        client.open("four-rooms")
        client.send("step")
        client.until("moment", lambda frame: frame["t"] == 1)
    with file.open("a") as end:
        end.write('{"time": 1, "pa')  # the studio was stopped while it wrote
    with running(replay=file) as port, connected(port) as client:
        assert client.until("hello")["replay"]
        assert client.until("world")["name"] == "four-rooms"
        assert client.until("moment", lambda frame: frame["t"] == 1)


HEAD = b'{"format": "ggpi studio recording", "version": 1}\n'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"words\n", "not a recording"),
        (b"", "not a recording"),
        (b"{words\n", "not a recording"),
        (b"[1]\n", "not a recording"),
        (b"\xff\xfe\x00", "not a recording"),
        (HEAD.replace(b"1", b"2"), "not a recording"),
        (HEAD + b"words\n", "line 2 of .* is damaged"),
        (HEAD + b"3\n", "line 2 of .* is damaged"),
        (HEAD + b'{"time": 1, "page": 0, "text": "{}"}\n{"time": 1, "page": 0, "text": 5}\n', "line 3 of"),
        (HEAD + b'{"time": 1, "page": 0, "data": "?"}\n', "line 2 of"),
        (HEAD + b'{"time": "?", "page": 0, "text": "{}"}\n', "line 2 of"),
    ],
)
def test_other_files_are_not_recordings(tmp_path, content, words):
    file = tmp_path / "other.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=words), running(replay=file):
        pass


def test_an_address_that_cannot_be_listened_at():
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=f"cannot listen on 127.0.0.1, port {port}: .* see --host and --port"
        ):
            listening("127.0.0.1", port)
    with pytest.raises(OSError, match="cannot listen on 203"):
        listening("203.0.113.1", 0)
    for host, wrong in (("", 0), ("127.0.0.1", -1), ("127.0.0.1", 2**16)):
        with pytest.raises(ValueError, match="--port from 0 to 65535"):
            listening(host, wrong)


def test_frames_leave_at_once():
    """Nagle's algorithm would hold small frames back until those before them have been acknowledged."""
    with listening("127.0.0.1", 0) as server, socket.create_connection(server.getsockname()):
        there, _ = server.accept()
        with there:
            assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_world_that_cannot_be_made_is_an_error():
    def broken():
        raise ModuleNotFoundError("the maze needs an extra")

    with running(worlds={"broken": broken}) as port, connected(port) as client:
        client.send("open", world="broken")
        assert "needs an extra" in client.until("error")["text"]
        client.send("open", world="other")
        assert "there is no world 'other'" in client.until("error")["text"]
