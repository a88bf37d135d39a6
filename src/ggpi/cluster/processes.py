"""Tasks in other processes of this machine, each started afresh (spawned) and connected by a pipe."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ggpi.cluster.environment import positive, variables
from ggpi.cluster.executor import RETRIES, Executor, Pool
from ggpi.cluster.outcomes import Failed, Lost, Outcome, outcome_of

_environ_lock = threading.Lock()


def processes(count: int, *, threads: int = 1, retries: int = RETRIES) -> Executor:
    """An executor that runs tasks in `count` processes of this machine, each with so many threads.

    They are started when they are first needed and kept, with the programs that they have compiled, until the
    executor is closed. Functions and tasks are pickled: functions must be importable from a module.

    Args:
        count: the number of processes.
        threads: threads per task.
        retries: how often a task is repeated after its worker died.
    """
    return _Processes(positive(count, "processes"), variables(threads), retries)


class _Processes(Executor):
    def __init__(self, count: int, environment: Mapping[str, str], retries: int):
        self._count, self._environment, self.retries = count, environment, retries
        self._free: list[_Worker] = []
        weakref.finalize(self, _kill, self._free)

    @property
    def workers(self) -> int:
        return self._count

    def close(self) -> None:
        _kill(self._free)

    def _pool(self, function: Callable[..., object]) -> Pool:
        return _Pool(function, self._count, self._environment, self._free)


def _kill(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().kill()


class _Worker:
    """A process, this end of its pipe, and the function that it holds."""

    def __init__(self, environment: Mapping[str, str]):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other,), daemon=True)
        self.function: bytes | None = None
        with _environ_lock, _environ(environment):
            self.process.start()
        other.close()

    def send(self, function: bytes, task: bytes) -> None:
        with contextlib.suppress(OSError):  # of a dead process; `receive` tells
            self.connection.send_bytes(function if function is not self.function else b"")
            self.connection.send_bytes(task)
            self.function = function

    def receive(self) -> Outcome:
        try:
            outcome = self.connection.recv_bytes()
        except (EOFError, OSError):
            self.process.join()
            return Lost(_death(self.process.exitcode))
        try:
            return pickle.loads(outcome)
        except Exception as error:
            return Failed(error)

    def kill(self) -> None:
        with self.connection:  # closed once the process is gone
            self.process.kill()
            self.process.join()


class _Pool(Pool):
    def __init__(
        self,
        function: Callable[..., object],
        count: int,
        environment: Mapping[str, str],
        free: list[_Worker],
    ):
        self._function = _pickled(function, "the function")
        self._count, self._environment, self._free = count, environment, free
        self.running = {}

    def has_room(self) -> bool:
        return len(self.running) < self._count

    def submit(self, name: str, task: object) -> None:
        pickled = _pickled(task, f"task {name}")
        worker = self._free.pop() if self._free else _Worker(self._environment)
        self.running[worker] = name
        worker.send(self._function, pickled)

    def wait(self) -> Sequence[tuple[str, Outcome]]:
        by_connection: dict[Any, _Worker] = {worker.connection: worker for worker in self.running}
        return [self._ended(by_connection[connection]) for connection in wait(list(by_connection))]

    def _ended(self, worker: _Worker) -> tuple[str, Outcome]:
        outcome = worker.receive()
        name = self.running.pop(worker)
        if isinstance(outcome, Lost):
            worker.kill()
        else:
            self._free.append(worker)
        return name, outcome

    def stop(self) -> None:
        _kill(list(self.running))
        self.running = {}


def _pickled(value: object, what: str) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"{what} cannot be sent to another process ({error}): use functions and classes that can be imported from "
            "a module"
        ) from error


def _death(code: int | None) -> str:
    if code is None or code >= 0:
        return f"it ended with exit code {code}"
    hint = ", which the system sends when memory runs out" if code == -signal.SIGKILL else ""
    return f"it was killed by {signal.Signals(-code).name}{hint}"


@contextlib.contextmanager
def _environ(changes: Mapping[str, str]) -> Iterator[None]:
    """Other variables of the environment, which processes started in the block inherit."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(connection: Connection) -> None:
    """Calls functions with tasks until the pipe is closed; ends when the parent does, however that ends."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all processes of a terminal; the parent ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function: Any = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            new, task = connection.recv_bytes(), connection.recv_bytes()
            if new:
                function = _Lazy(new)
            connection.send_bytes(_sent(outcome_of(function, task)))


class _Lazy:
    """A function that is unpickled at its first call, so that an error there names a task."""

    def __init__(self, pickled: bytes):
        self._pickled, self._function = pickled, None

    def __call__(self, task: bytes) -> object:
        if self._function is None:
            self._function = pickle.loads(self._pickled)
        return self._function(pickle.loads(task))


def _sent(outcome: Outcome) -> bytes:
    try:
        return pickle.dumps(outcome)
    except Exception as error:
        return pickle.dumps(Failed(TypeError(f"the result cannot be sent to the caller: {error}")))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
