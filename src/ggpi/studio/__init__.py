"""The studio: a page in the browser on which one clicks a reward and watches plans and the agent.

    app = ggpi.studio.app(token="secret")      a FastAPI application, for a server of your own

Python plans, the page draws; `ggpi.studio.protocol` has what they say to each other.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ggpi.studio.server import app as app

__all__ = ["app"]


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module 'ggpi.studio' has no attribute {name!r}")
    from ggpi.studio.server import app

    return app
