"""A studio on a free port of this machine, and a client that speaks its protocol."""

import json
import shutil
import threading
import time
from contextlib import contextmanager

import pytest

from ggpi.studio.catalogue import directory, four_rooms
from ggpi.studio.frames import SENT
from ggpi.studio.protocol import read_binary

pytest.importorskip("uvicorn", reason="the studio needs its extra: pip install '.[studio]'")

TOKEN = "a-token-for-tests"
WORLDS = {"four-rooms": four_rooms, "point-mass": directory("point-mass-ghms", "point-mass")}
PATIENCE = 300
"""Seconds after which a test gives up: it only catches hangs."""

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-unsafe-swiftshader"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Debian's Chromium, without a window."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("there is no browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is part of the extra dev")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


@contextmanager
def running(**options):
    """A server in a thread; yields its port and its application."""
    import uvicorn

    from ggpi.studio.server import app

    made = app(options.pop("worlds", WORLDS), token=TOKEN, **options)
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_level="warning", ws_max_size=2**14))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
        assert thread.is_alive()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


@pytest.fixture(scope="session")
def port():
    with running() as port:
        yield port


def undocumented(header):
    """Fields of a frame that `ggpi.studio.frames` does not have."""
    found = set()
    for name, value in header.items():
        if name == "arrays":
            found |= {f"{array['name']}: array" for array in value}
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found |= {f"{name}[].{part}" for row in value for part in row}
        elif name != "type":
            found.add(name)
    known = SENT[header["type"]]
    return {name for name in found if not any(one == name or one.startswith(f"{name}[].") for one in known)}


class Client:
    """Sends messages, and reads frames until one of a kind."""

    def __init__(self, socket):
        self.socket = socket
        self.seen = []

    def send(self, kind, **fields):
        self.socket.send(json.dumps({"type": kind, **fields}))

    def next(self):
        """The next frame, its arrays among its fields."""
        frame = self.socket.recv(timeout=PATIENCE)
        if isinstance(frame, str):
            found = json.loads(frame)
        else:
            header, arrays = read_binary(frame)
            found = header | {f"{name}_array": array for name, array in arrays.items()}
        self.seen.append(found["type"])
        assert not undocumented(found if isinstance(frame, str) else header)
        return found

    def until(self, kind, where=lambda frame: True):
        """The next frame of a kind for which something holds; errors are raised unless they are wanted."""
        while True:
            found = self.next()
            assert kind == "error" or found["type"] != "error", found
            if found["type"] == kind and where(found):
                return found

    def open(self, world):
        self.send("open", world=world)
        about = self.until("world")
        return about, self.until("moment")


@contextmanager
def connected(port, **options):
    from websockets.sync.client import connect

    origin = options.pop("origin", f"http://127.0.0.1:{port}")
    address = f"ws://127.0.0.1:{port}/ws?token={options.pop('token', TOKEN)}"
    with connect(address, origin=origin, max_size=2**26, **options) as socket:
        yield Client(socket)


@pytest.fixture
def client(port):
    with connected(port) as found:
        assert found.until("hello")["version"] == 1
        yield found
