"""Executors by the names that the command line uses."""

from __future__ import annotations

import re

from ggpi.cluster.executor import Executor
from ggpi.cluster.local import local
from ggpi.cluster.on_ray import ray
from ggpi.cluster.processes import processes


def named(text: str, *, threads: int = 1) -> Executor:
    """The executor that a text names.

    Args:
        text: "local", "processes:N", "ray", or "ray://host:port" for the Ray Client of a cluster.
        threads: threads per task, except for "local", which has those of this process.
    """
    if text == "local":
        return local()
    if found := re.fullmatch(r"processes:(\d+)", text):
        return processes(int(found[1]), threads=threads)
    if text == "ray" or re.fullmatch(r"ray://[^/\s]+:\d+", text):
        return ray(None if text == "ray" else text, threads=threads)
    raise ValueError(f"no executor is called {text!r}: use local, processes:N, ray or ray://host:port")
