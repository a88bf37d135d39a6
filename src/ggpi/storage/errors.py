"""The one exception for files that cannot be read, and warnings of what would otherwise fail in silence."""

from __future__ import annotations

from pathlib import Path


class FileError(ValueError):
    """A file cannot be used; the message names the file, the field where there is one, and the problem.

    Every reader of this library (saved objects, data files, Stable-Baselines3 zips, `world.json`) raises this for
    anything wrong with a file's content. A path that does not exist stays a `FileNotFoundError`.
    """

    def __init__(self, path: str | Path, problem: str, *, field: str | None = None):
        where = f"{path}: {field}" if field else str(path)
        super().__init__(f"{where}: {problem}")
        self.path, self.field, self.problem = str(path), field, problem


class NoRewardWarning(UserWarning):
    """Every plan has the value 0, because no sampled future reaches the reward."""


class UnfamiliarStateWarning(UserWarning):
    """An agent acts in a state that is far from the data that its models learned from."""
