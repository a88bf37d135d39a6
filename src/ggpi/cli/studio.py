"""`ggpi studio [DIR]`: a page in the browser on which one clicks a reward and watches plans and the agent."""

import argparse
import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from ggpi.cli.own_modules import find_own_modules
from ggpi.progress import waiting

HELP, USAGE = "click a reward in the browser, watch plans and the agent", "[options]"
EXAMPLES = """\
examples:
  ggpi studio                                     four rooms; the page has the other worlds
  ggpi studio --world ant                         the ant, in three dimensions
  ggpi studio results/fit-Pendulum-v1             a directory of ggpi fit
  ggpi studio results/small results/large         several of them, to choose from
  ggpi studio results/small --world ant           the directory is in the list, the ant opens first
  ggpi studio --no-open --port 8471               print the address only; with --port it is the same each time
  ggpi studio --record run.jsonl                  keep what the page sees
  ggpi studio --replay run.jsonl                  show it again, without planning

Only this computer can reach the page, and only with the token in its address. Who has the address can let this
process plan, and can do nothing else. Stop it with Ctrl-C.
"""
PLACES = ("127.0.0.1", "localhost", "::1")
OPEN = "others can reach this page; who has its address can use this computer's processor, without encryption"
EVERYWHERE = ("0.0.0.0", "::")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is shown, and where."""
    add = parser.add_argument
    add("directories", metavar="DIR", nargs="*", type=Path, help="directories of ggpi fit")
    add(
        "--world",
        metavar="NAME",
        help="the world that opens first: four-rooms, point-mass, maze, ant, one of OGBench: pointmaze-giant, or the "
        "name of one DIR",
    )
    add(
        "--env",
        metavar="MODULE:ID",
        help="the environment of every DIR, if a module has to be imported; runs its code",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this computer only)")
    add(
        "--port",
        type=int,
        default=0,
        metavar="N",
        help="port, which keeps the token of the last time (default: any)",
    )
    add("--no-open", action="store_true", help="do not open a browser")
    add("--record", type=Path, metavar="FILE", help="write everything that pages are sent to FILE")
    add("--replay", type=Path, metavar="FILE", help="show a recording")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Serves the page until Ctrl-C."""
    find_own_modules(options.env)
    with waiting("starting…"):
        server = _imported()
        from ggpi.studio.catalogue import WORLDS, directory

    given = {}
    for name, place in named(options.directories).items():
        made = directory(place, name, options.env)()  # what is wrong with it is said before a page is open
        given[name] = lambda made=made: made
    worlds = given | {name: make for name, make in WORLDS.items() if name not in given}
    first = options.world
    if first is not None and first not in worlds:
        raise ValueError(f"there is no world {first!r}; there are {', '.join(worlds)}")
    if options.record is not None and options.replay is not None:
        raise ValueError("give --record or --replay, not both")
    _serve(server, options, {**({first: worlds[first]} if first else {}), **worlds})


def named(directories: Sequence[Path]) -> dict[str, Path]:
    """What the page calls directories: their last name, or as much of the path as tells them apart."""
    places = {place.resolve(): place for place in directories}
    found = {}
    for path, place in places.items():
        count = 1
        while sum(other.parts[-count:] == path.parts[-count:] for other in places) > 1:
            count += 1
        found["/".join(path.parts[-count:])] = place
    return found


def kept_token() -> str:
    """A random token that only this user can read: pages that are open connect again after a restart."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "ggpi" / "studio-token"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(place, "x", opener=_for_me_alone) as file:
            file.write(secrets.token_urlsafe(24))
        found = place.read_text("utf-8")
    except OSError:
        found = ""
    return found if len(found) >= 32 else secrets.token_urlsafe(24)


def names_of(host: str) -> list[str]:
    """Under which names and addresses others reach a host; all of this computer's for 0.0.0.0."""
    if host not in EVERYWHERE:
        return [host]
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        _, others, addresses = socket.gethostbyname_ex(name)
        return [name.lower(), *others, *addresses]
    return [name.lower()]


def _for_me_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _imported():
    """The server, if its packages are installed."""
    try:
        from ggpi.studio import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "starlette", "uvicorn", "websockets"):
            raise
        raise ModuleNotFoundError(
            "the studio needs an extra: pip install '.[studio]' in the checkout"
        ) from error
    return server


def _serve(server, options: argparse.Namespace, worlds: dict) -> None:
    import warnings

    from ggpi.agent.warnings import NoRewardWarning

    warnings.simplefilter("ignore", NoRewardWarning)  # the page says it
    if options.host not in PLACES:
        print(f"ggpi: --host {options.host}: {OPEN}", file=sys.stderr)
    with server.listening(options.host, options.port) as at:
        _serve_at(at, server, options, worlds)


def _serve_at(at: socket.socket, server, options: argparse.Namespace, worlds: dict) -> None:
    import threading
    import webbrowser

    token, host = kept_token() if options.port else secrets.token_urlsafe(24), options.host
    app = server.app(
        worlds,
        token=token,
        hosts={*PLACES, *names_of(host)},
        record=options.record,
        replay=options.replay,
    )
    if options.replay is None:
        with waiting("opening the first world…"):
            app.state.catalogue.open(next(iter(worlds)))

    def announce(port: int) -> None:
        name = names_of(host)[0]
        shown = f"[{name}]" if ":" in name else name
        address = f"http://{shown}:{port}/?token={token}"
        print(address, flush=True)
        if options.replay is None:
            threading.Thread(target=_warm, args=(app,), daemon=True).start()
        if not options.no_open:
            webbrowser.open(address)

    server.serve(app, at, announce)


def _warm(app) -> None:
    """Prepares the first page; what is wrong with its world is said there."""
    with contextlib.suppress(Exception):
        app.state.warm()
