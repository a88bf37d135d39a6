"""Tasks on a Ray cluster, or on a local one that is started and stopped here."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ggpi.cluster.environment import positive, variables
from ggpi.cluster.executor import RETRIES, Executor, Pool
from ggpi.cluster.outcomes import Lost, Outcome, outcome_of

AHEAD = 2
"""Tasks in flight per worker: one that runs, and one that is already there when it ends."""
OBJECT_STORE = 10**9
"""Bytes of shared memory for the objects of a local cluster; what exceeds it is spilled to disk."""

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Variables with which Ray, when it is imported, takes the loopback interface for the only one on any system."""
ALONE = {"address": "local", "include_dashboard": False, "object_store_memory": OBJECT_STORE}
"""How a cluster of this machine alone is started."""


def ray(address: str | None = None, *, threads: int = 1, retries: int = RETRIES) -> Executor:
    """An executor that runs tasks on Ray, with so many threads (CPUs of Ray) each; needs the extra `cluster`.

    Without an address, a connection that `ray.init` has made is used, else the cluster that RAY_ADDRESS names, else
    a cluster is started on this machine, reachable from this machine only, and stopped when the executor is closed.

    Args:
        address: "ray://host:port" of a cluster's Ray Client, or any other address that `ray.init` takes.
        threads: threads per task.
        retries: how often a task is repeated after its worker or its node died.
    """
    return _Ray(address, positive(threads, "threads"), retries)


class _Ray(Executor):
    def __init__(self, address: str | None, threads: int, retries: int):
        self._address, self._threads, self.retries = address, threads, retries
        self._is_ours = False

    @property
    def workers(self) -> int:
        return max(1, int(self._connected().cluster_resources().get("CPU", 0)) // self._threads)

    def close(self) -> None:
        if self._is_ours:
            _imported().shutdown()
            self._is_ours = False

    def _connected(self) -> Any:
        """Ray, connected."""
        ray, is_new = connect(self._address)
        self._is_ours = self._is_ours or is_new
        return ray

    def _pool(self, function: Callable[..., object]) -> Pool:
        return _Pool(self._connected(), function, self._threads, lambda: self.workers)


def connect(address: str | None = None) -> tuple[Any, bool]:
    """Ray, connected, and whether that is new."""
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        os.environ.update(LOOPBACK)
    ray = _imported()
    if ray.is_initialized():
        return ray, False
    with warnings.catch_warnings():
        # of JAX, if it was used before: Ray forks here only to start its own programs
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        ray.init(**(ALONE if address is None else {"address": address}))
    return ray, True


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    """Ray, connected for a while."""
    ray, is_new = connect()
    try:
        yield ray
    finally:
        if is_new:
            ray.shutdown()


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ModuleNotFoundError("Ray is an extra: pip install '.[cluster]' in the checkout") from error
    return ray


class _Pool(Pool):
    def __init__(self, ray: Any, function: Callable[..., object], threads: int, workers: Callable[[], int]):
        self._ray, self._workers = ray, workers
        self._function = [
            ray.put(function)
        ]  # in a list, so that each worker fetches it once and not for each task
        settings = {"num_cpus": threads, "max_retries": 0, "runtime_env": {"env_vars": variables(threads)}}
        self._remote = ray.remote(**settings)(_call)
        self.running = {}

    def has_room(self) -> bool:
        return len(self.running) < AHEAD * self._workers()

    def submit(self, name: str, task: object) -> None:
        self.running[self._remote.options(name=name).remote(self._function, task)] = name

    def wait(self) -> Sequence[tuple[str, Outcome]]:
        (ready, *more), _ = self._ray.wait(list(self.running), num_returns=1)
        return [(self.running.pop(one), self._outcome(one)) for one in (ready, *more)]

    def _outcome(self, reference: Any) -> Outcome:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RaySystemError:
            raise  # the connection to the cluster is lost
        except self._ray.exceptions.RayError as error:
            return Lost(" ".join(str(error).split()))

    def stop(self) -> None:
        for reference in self.running:
            self._ray.cancel(reference, force=True)
        self.running = {}


_held: dict[str, Any] = {}
"""In a worker: the function that it fetched last."""


def _call(function: Sequence[Any], task: object) -> Outcome:
    """Runs in a worker of Ray."""
    import ray

    (reference,) = function
    name = reference.hex()
    if name not in _held:
        _held.clear()
        _held[name] = ray.get(reference)
    return outcome_of(_held[name], task)
