"""One program in several processes on Ray, whose devices `jax.distributed` joins."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, TypeVar

from ggpi.cluster.environment import positive, variables
from ggpi.cluster.executor import TaskError
from ggpi.cluster.on_ray import connected
from ggpi.cluster.outcomes import Failed, outcome_of

Result = TypeVar("Result")


def together(function: Callable[[], Result], count: int, *, threads: int = 1) -> Result:
    """Calls a function in `count` actors of Ray at the same time, and returns what it returns in the first.

    In each of them `jax.devices()` are the devices of all, over which `ggpi.fit` divides its batches. The function has
    to do the same in all: give it its data and its key, and no directory to write to. On CPUs, JAX exchanges numbers
    by Gloo. Ray is that of `ray.init` or of RAY_ADDRESS, else it is started for the call.

    Args:
        function: importable, or a `functools.partial` of such a function.
        count: the number of processes; Ray needs `count` × `threads` CPUs.
        threads: threads of each.
    """
    positive(count, "processes")
    with connected() as ray:
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if count * threads > cpus:
            raise ValueError(f"{count} processes × {threads} threads are more than Ray's {cpus} CPUs")
        settings = {**variables(threads), "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
        member = ray.remote(num_cpus=threads, runtime_env={"env_vars": settings})(_Member)
        members = [member.remote() for _ in range(count)]
        try:
            return _result_of_first(ray, members, function)
        finally:
            for one in members:
                ray.kill(one)


def _result_of_first(ray: Any, members: list[Any], function: Callable[[], Result]) -> Result:
    """Waits for all; when one fails, the others would wait for it forever, so its error is raised at once."""
    address, shared = ray.get(members[0].address.remote()), ray.put(function)
    calls = [one.call.remote(shared, address, len(members), rank) for rank, one in enumerate(members)]
    left = list(calls)
    while left:
        (done, *_), left = ray.wait(left)
        name = f"process {calls.index(done)}"
        try:
            outcome = ray.get(done)
        except ray.exceptions.RayActorError as error:
            raise TaskError(name, f"it died: {' '.join(str(error).split())}") from error
        if isinstance(outcome, Failed):
            raise TaskError(name, f"{type(outcome.error).__name__}: {outcome.error}") from outcome.error
    return ray.get(calls[0]).result


class _Member:
    """An actor: a process with its devices."""

    def address(self) -> str:
        """Of a free port of this machine, where the processes meet."""
        import ray

        host = ray.util.get_node_ip_address()
        with socket.socket() as port:
            port.bind((host, 0))
            return f"{host}:{port.getsockname()[1]}"

    def call(self, function: Callable[[], object], address: str, count: int, rank: int) -> object:
        return outcome_of(lambda _: _joined(function, address, count, rank), None)


def _joined(function: Callable[[], object], address: str, count: int, rank: int) -> object:
    """The function's result in the first process, with its arrays on one device."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, rank)
    result = function()
    here = jax.local_devices()[0]
    result = jax.tree.map(
        lambda leaf: jax.device_put(np.asarray(leaf), here) if isinstance(leaf, jax.Array) else leaf, result
    )
    jax.distributed.shutdown()
    return result if rank == 0 else None
