"""A few things by name: those that were used last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Thing = TypeVar("Thing")


class Latest(Generic[Name, Thing]):
    """At most so many things; threads may share them."""

    def __init__(self, most: int):
        self._most, self._held, self._lock = most, dict[Name, Thing](), threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: Name) -> Thing | None:
        """The thing of a name; None if it is not, or no longer, there."""
        with self._lock:
            if name not in self._held:
                return None
            self._held[name] = self._held.pop(name)
            return self._held[name]

    def put(self, name: Name, thing: Thing) -> None:
        """Keeps a thing in place of the one that was used longest ago."""
        with self._lock:
            self._held.pop(name, None)
            self._held[name] = thing
            if len(self._held) > self._most:
                del self._held[next(iter(self._held))]

    def update(self, change: Callable[[Thing], Thing]) -> None:
        """Changes all of them."""
        with self._lock:
            self._held = {name: change(thing) for name, thing in self._held.items()}
