"""Modules and files of the user's own that options name, such as `--env boat:Boat-v0`."""

import sys
from pathlib import Path


def find_own_modules(*named: str | None) -> None:
    """Lets `--env boat:Boat-v0` find a boat.py in this directory, after everything that is installed.

    Only if an option names a module or file: otherwise a file of this directory could replace a package that is not
    installed.
    """
    here = str(Path.cwd())
    if here not in sys.path and any(word and ":" in word for word in named):
        sys.path.append(here)
