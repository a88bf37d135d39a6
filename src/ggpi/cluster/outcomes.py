"""How a task ended, and the call of a task in a worker."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from ggpi.progress import silenced


@dataclass(frozen=True)
class Done:
    """The task returned."""

    result: object


@dataclass(frozen=True)
class Failed:
    """The task raised."""

    error: Exception


@dataclass(frozen=True)
class Lost:
    """The worker died before the task had ended."""

    reason: str


Outcome = Done | Failed | Lost


def outcome_of(function: Callable[..., object], task: object) -> Done | Failed:
    """The result of a task in a worker, or its error with the traceback as a note; progress is not shown."""
    try:
        with silenced():
            return Done(function(task))
    except Exception as error:
        return Failed(_portable(error))


def _portable(error: Exception) -> Exception:
    """The error, or one of the same text if it cannot be pickled; tracebacks do not travel, so a note holds them."""
    note = f"in the worker:\n{traceback.format_exc()}"
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(note)
    return error
