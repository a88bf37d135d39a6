"""The server: a page, its files, a WebSocket for each page that is open, and who may talk to it.

Only pages of this server with its token are answered: the Host has to be a known one, which stops DNS rebinding, and
the Origin of a WebSocket has to be the server itself.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.requests import HTTPConnection

from ggpi._jax.jit import num_programs
from ggpi.studio import films
from ggpi.studio.catalogue import WORLDS, Catalogue, Make
from ggpi.studio.outbox import Frame, Outbox
from ggpi.studio.preparing import warm
from ggpi.studio.protocol import LARGEST, VERSION, ProtocolError, read, text_frame
from ggpi.studio.recording import Recording, read_recording
from ggpi.studio.session import PLANNER, Session

STATIC = Path(__file__).parent / "static"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-cache",
}
MOST_SESSIONS = 32
RATE, BURST = 60.0, 120.0
"""Messages of a page per second, and how many may come at once."""
STRAY = "This page needs its token: open the whole address that ggpi studio printed.\n"


def app(
    worlds: Mapping[str, Make] = WORLDS,
    *,
    token: str,
    hosts: Collection[str] = LOOPBACK,
    record: Path | None = None,
    replay: Path | None = None,
) -> FastAPI:
    """The studio as an application, for a server of your own.

    Args:
        worlds: name → what makes the world; by default those that come with the package.
        token: what the address of the page ends with: `/?token=…`.
        hosts: names under which the server may be called.
        record: a file to which all frames are written.
        replay: a recording that is shown instead of live agents.
    """
    studio = _Studio(
        Catalogue(worlds),
        token,
        frozenset(hosts),
        None if record is None else Recording(record),
        None if replay is None else read_recording(replay),
    )
    made = FastAPI(title="ggpi studio", docs_url=None, redoc_url=None, openapi_url=None)
    made.middleware("http")(studio.guard)
    made.get("/health")(studio.health)
    made.get("/")(studio.page)
    made.post("/film")(studio.film)
    made.websocket("/ws")(studio.converse)
    made.mount("/static", StaticFiles(directory=STATIC))
    made.state.catalogue, made.state.warm = studio.catalogue, partial(warm, studio.catalogue)
    return made


@dataclass(eq=False)
class _Studio:
    """What all pages share."""

    catalogue: Catalogue
    token: str
    hosts: frozenset[str]
    recording: Recording | None
    replayed: list[tuple[float, Frame]] | None
    sessions: set[Session] = field(default_factory=set)
    filming: films.Films = field(default_factory=films.Films)
    numbers: itertools.count = field(default_factory=itertools.count)

    def knows(self, host: str | None) -> bool:
        """Whether a Host header names this server."""
        return urlsplit(f"//{host or ''}").hostname in self.hosts

    def is_token(self, given: str | None) -> bool:
        return secrets.compare_digest((given or "").encode(), self.token.encode())

    async def guard(self, request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Checks the host of every request, and adds headers to every answer."""
        try:
            is_known = self.knows(request.headers.get("host"))
        except ValueError:
            is_known = False
        response = await answer(request) if is_known else PlainTextResponse("unknown host\n", 421)
        response.headers.update(HEADERS)
        return response

    async def health(self) -> dict[str, object]:
        """For those who watch the server: whether it answers, its pages and their planners, and what it keeps."""
        planners = sum(thread.name == PLANNER for thread in threading.enumerate())
        pages = {"sessions": len(self.sessions), "planners": planners}
        kept = {"agents": self.catalogue.num_agents, "programs": num_programs()}
        return {"status": "ok", "version": VERSION, **pages, **kept}

    async def page(self, token: str | None = None) -> Response:
        """The page, for those who know the token."""
        return FileResponse(STATIC / "index.html") if self.is_token(token) else PlainTextResponse(STRAY, 403)

    async def film(self, request: Request) -> Response:
        """The pictures of a GIF as MP4, for a page of this server."""
        if not self.may_connect(request):
            return PlainTextResponse(STRAY, 403)
        return await self.filming.answer(request)

    def may_connect(self, page: HTTPConnection) -> bool:
        """Whether a request or a WebSocket comes from a page of this server."""
        host, origin = page.headers.get("host"), page.headers.get("origin")
        try:
            is_own = origin is None or urlsplit(origin).netloc == host
            return is_own and self.knows(host) and self.is_token(page.query_params.get("token"))
        except ValueError:
            return False

    async def converse(self, page: WebSocket) -> None:
        """A page, as long as it is open."""
        if not self.may_connect(page):
            await page.close(1008)
            return
        if len(self.sessions) >= MOST_SESSIONS:
            await page.accept()
            await page.close(1013, "too many pages are open")
            return
        await page.accept()
        hello = {"version": VERSION, "worlds": self.catalogue.names, "replay": self.replayed is not None}
        hello |= {"film": films.is_possible()}
        if self.replayed is not None:
            await page.send_text(text_frame("hello", **hello))
            await _played(page, self.replayed)
            return
        number = next(self.numbers)
        keep = None if self.recording is None else lambda frame: self.recording.add(number, frame)  # type: ignore
        session = Session(self.catalogue, Outbox(asyncio.get_running_loop(), keep))
        session.outbox.put(text_frame("hello", **hello))
        self.sessions.add(session)
        session.thread.start()
        try:
            await _until_first(_received(page, session), _sent(page, session.outbox))
        finally:
            session.close()
            self.sessions.discard(session)


async def _until_first(*parts: Awaitable[None]) -> None:
    """Runs parts until one of them ends, then stops the others."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _received(page: WebSocket, session: Session) -> None:
    """Messages of the page, as many as are allowed."""
    allowed, last = BURST, time.monotonic()
    try:
        while True:
            message = await page.receive()
            if message["type"] == "websocket.disconnect":
                return
            now = time.monotonic()
            allowed, last = min(BURST, allowed + RATE * (now - last)), now
            allowed -= 1
            if allowed < 0 or session.outbox.is_full:
                await page.close(1008, "too many messages")
                return
            _heard(message.get("text"), session)
    except (WebSocketDisconnect, RuntimeError):
        return


def _heard(text: str | None, session: Session) -> None:
    try:
        if text is None:
            raise ProtocolError("messages are text")
        if not session.take(read(text)):
            raise ProtocolError("too many messages are waiting")
    except ProtocolError as error:
        session.outbox.put(text_frame("error", text=str(error)))


async def _sent(page: WebSocket, outbox: Outbox) -> None:
    try:
        while not outbox.is_full:
            await _send(page, await outbox.get())
    except (WebSocketDisconnect, RuntimeError, OSError):
        return


async def _send(page: WebSocket, frame: Frame) -> None:
    await (page.send_text(frame) if isinstance(frame, str) else page.send_bytes(frame))


async def _played(page: WebSocket, frames: list[tuple[float, Frame]]) -> None:
    """A recording at its own pace; what the page says is not listened to."""

    async def play() -> None:
        begun, first = time.monotonic(), frames[0][0] if frames else 0.0
        for at, frame in frames:
            await asyncio.sleep(max(begun + at - first - time.monotonic(), 0.0))
            if not (isinstance(frame, str) and '"type": "hello"' in frame):
                await _send(page, frame)
        await asyncio.Event().wait()

    async def listen() -> None:
        while (await page.receive())["type"] != "websocket.disconnect":
            pass

    await _until_first(play(), listen())


class _Server(uvicorn.Server):
    """A server that says when it answers, and on which port."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[int], None]):
        super().__init__(config)
        self.on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_ready(self.servers[0].sockets[0].getsockname()[1])


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; raises what says how to choose another."""
    if not host or not 0 <= port < 2**16:
        raise ValueError(f"--host is a name or an address, --port from 0 to 65535; got {host!r} and {port}")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.create_server(address[:2], family=family)
        # connections inherit it: no frame waits 40 ms
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise OSError(
            f"cannot listen on {host}, port {port}: {why.lower()}; see --host and --port"
        ) from error


def serve(application: FastAPI, at: socket.socket, on_ready: Callable[[int], None]) -> None:
    """Runs an application on a listening socket until Ctrl-C; `on_ready` is called with the port when it answers."""
    settings = uvicorn.Config(
        application,
        log_level="warning",
        ws_max_size=LARGEST,
        ws_max_queue=16,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    _Server(settings, on_ready).run([at])
