"""What all executors have in common: tasks are started while there is room, and repeated when their worker died."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from ggpi.cluster.outcomes import Done, Failed, Lost, Outcome
from ggpi.progress import progress

Task = TypeVar("Task")
Result = TypeVar("Result")
RETRIES = 3
"""How often a task is repeated by default."""


class TaskError(Exception):
    """A task raised, or ended its worker too often. The message names the task; the cause is the task's own error."""

    def __init__(self, task: str, reason: str):
        super().__init__(task, reason)
        self.task, self.reason = task, reason

    def __str__(self) -> str:
        return f"task {self.task}: {self.reason}"


class Executor(ABC):
    """Runs independent tasks; a context manager that ends its workers. See `local`, `processes` and `ray`."""

    retries: int = RETRIES
    """How often a task is repeated after its worker died; a task that raises is not repeated."""

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, title: str = "tasks"
    ) -> list[Result]:
        """The results of all tasks, in their order, with a progress bar.

        Args:
            function: called with each task, in any order and on any worker.
            tasks: arguments that can be pickled; small ones, because each is sent by itself.
            title: shown before the progress bar.
        """
        by_name = {str(i): task for i, task in enumerate(tasks)}
        results: dict[str, Result] = {}
        with progress(len(by_name), title, "") as advance:
            for name, result in self.completed(function, by_name):
                results[name] = result
                advance(len(results), "")
        return [results[name] for name in by_name]

    def completed(
        self,
        function: Callable[[Task], Result],
        tasks: Mapping[str, Task],
        *,
        begin: Callable[[str], None] = lambda name: None,
    ) -> Iterator[tuple[str, Result]]:
        """Names and results of tasks as they end.

        When a task fails, no more are started; those that still run are waited for, and their results yielded, before
        a `TaskError` is raised.

        Args:
            function: called with each task.
            tasks: their arguments by name; names appear in errors.
            begin: called with the name of each task before it is submitted.
        """
        waiting, losses = deque(tasks), Counter[str]()
        failures: list[TaskError] = []
        with self._pool(function) as pool:
            while waiting or pool.running:
                while waiting and pool.has_room():
                    begin(waiting[0])
                    pool.submit(waiting[0], tasks[waiting.popleft()])
                for name, outcome in pool.wait():
                    if isinstance(outcome, Done):
                        yield name, cast(Result, outcome.result)
                    elif isinstance(outcome, Lost) and losses[name] < self.retries:
                        losses[name] += 1
                        waiting.append(name)
                    else:
                        failures.append(_failure(name, outcome, losses[name] + 1))
                if failures:
                    waiting.clear()
        if failures:
            raise failures[0]

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks run at the same time."""

    @abstractmethod
    def close(self) -> None:
        """Ends the workers; they are started again when needed."""

    @abstractmethod
    def _pool(self, function: Callable[..., object]) -> Pool:
        """What runs the tasks of one function."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Pool(ABC):
    """The running tasks of one function; a context manager that stops those that are left."""

    running: dict[Any, str]
    """The names of submitted tasks that have not been waited for."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether another task should be submitted now."""

    @abstractmethod
    def submit(self, name: str, task: object) -> None:
        """Starts a task."""

    @abstractmethod
    def wait(self) -> Sequence[tuple[str, Outcome]]:
        """Waits until tasks have ended, and returns their outcomes."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the tasks that still run."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _failure(name: str, outcome: Failed | Lost, deaths: int) -> TaskError:
    if isinstance(outcome, Lost):
        return TaskError(name, f"its worker died {deaths} times, the last time because {outcome.reason}")
    kind = "" if isinstance(outcome.error, TaskError) else f"{type(outcome.error).__name__}: "
    error = TaskError(name, " ".join(f"{kind}{outcome.error}".split()))
    error.__cause__ = outcome.error
    return error
