"""Tasks one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ggpi.cluster.executor import Executor, Pool
from ggpi.cluster.outcomes import Done, Failed, Outcome


def local() -> Executor:
    """An executor that runs tasks one after the other in this process, with the threads that it has."""
    return _Local()


class _Local(Executor):
    @property
    def workers(self) -> int:
        return 1

    def close(self) -> None:
        pass

    def _pool(self, function: Callable[..., object]) -> Pool:
        return _OneByOne(function)


class _OneByOne(Pool):
    """At most one submitted task, which runs when it is waited for."""

    def __init__(self, function: Callable[..., object]):
        self.function, self.running = function, {}

    def has_room(self) -> bool:
        return not self.running

    def submit(self, name: str, task: object) -> None:
        self.task, self.running = task, {0: name}

    def wait(self) -> Sequence[tuple[str, Outcome]]:
        name = self.running.pop(0)
        try:
            return [(name, Done(self.function(self.task)))]
        except Exception as error:
            return [(name, Failed(error))]

    def stop(self) -> None:
        self.running = {}
