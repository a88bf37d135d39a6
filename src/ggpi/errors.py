"""The one exception for files that cannot be read: damaged, hostile, or of another kind."""

from __future__ import annotations

from pathlib import Path


class FileError(ValueError):
    """A file cannot be used; the message names the file, the field where there is one, and the problem.

    Every reader of this library (saved objects, data files, Stable-Baselines3 zips, `world.json`) raises this for
    anything wrong with a file's content. A path that does not exist stays a `FileNotFoundError`.

    Beyond the paper: files come from elsewhere
    """

    def __init__(self, path: str | Path, problem: str, *, field: str | None = None):
        where = f"{path}: {field}" if field else str(path)
        super().__init__(f"{where}: {problem}")
        self.path, self.field, self.problem = str(path), field, problem
