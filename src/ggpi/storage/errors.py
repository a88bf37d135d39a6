"""The exception for files whose content cannot be used."""

from __future__ import annotations

from pathlib import Path


class FileError(ValueError):
    """The content of a file cannot be used; the message names the file, the field and the problem.

    Every reader of this library (saved objects, data files, Stable-Baselines3 zips, `world.json`) raises it. A path
    that does not exist raises `FileNotFoundError`.
    """

    def __init__(self, path: str | Path, problem: str, *, field: str | None = None):
        where = f"{path}: {field}" if field else str(path)
        super().__init__(f"{where}: {problem}")
        self.path, self.field, self.problem = str(path), field, problem
