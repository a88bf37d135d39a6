"""`ggpi studio [DIR]`: a page in the browser on which one clicks a reward and watches plans and the agent."""

import argparse
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
  ggpi studio --no-open --port 8471               print the address only
  ggpi studio --record run.jsonl                  keep what the page sees
  ggpi studio --replay run.jsonl                  show it again, without planning

Only this computer can reach the page, and only with the token in its address. Who has the address can let this
process plan, and can do nothing else. Stop it with Ctrl-C.
"""
PLACES = ("127.0.0.1", "localhost", "::1")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is shown, and where."""
    add = parser.add_argument
    add("directory", metavar="DIR", nargs="?", type=Path, help="a directory of ggpi fit")
    add(
        "--world",
        metavar="NAME",
        help="the world that opens first: four-rooms, point-mass, maze, ant, or one of OGBench: pointmaze-giant",
    )
    add(
        "--env",
        metavar="MODULE:ID",
        help="the environment of DIR, if a module has to be imported; runs its code",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this computer only)")
    add("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)")
    add("--no-open", action="store_true", help="do not open a browser")
    add("--record", type=Path, metavar="FILE", help="write everything that pages are sent to FILE")
    add("--replay", type=Path, metavar="FILE", help="show a recording")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Serves the page until Ctrl-C."""
    find_own_modules(options.env)
    with waiting("starting…"):
        server = _imported()
        from ggpi.studio.catalogue import WORLDS, directory

    worlds, first = dict(WORLDS), options.world
    if options.directory is not None:
        if first is not None:
            raise ValueError("give a directory or --world, not both")
        first = options.directory.resolve().name
        made = directory(options.directory, first, options.env)
        made()  # what is wrong with it is said before a page is open
        worlds = {first: made, **worlds}
    if first is not None and first not in worlds:
        raise ValueError(f"there is no world {first!r}; there are {', '.join(worlds)}")
    if options.record is not None and options.replay is not None:
        raise ValueError("give --record or --replay, not both")
    _serve(server, options, {**({first: worlds[first]} if first else {}), **worlds})


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
    import secrets
    import warnings
    import webbrowser

    from ggpi.agent.warnings import NoRewardWarning

    warnings.simplefilter("ignore", NoRewardWarning)  # the page says it
    token, host = secrets.token_urlsafe(24), options.host
    app = server.app(
        worlds,
        token=token,
        hosts={*PLACES, host},
        record=options.record,
        replay=options.replay,
    )

    def announce(port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{port}/?token={token}"
        print(address, flush=True)
        if not options.no_open:
            webbrowser.open(address)

    server.serve(app, host, options.port, announce)
