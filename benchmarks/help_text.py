"""Seconds until `ggpi --help`, `ggpi list` and `ggpi eq 3.2` have answered, beside an interpreter that does nothing.

Each command is a process of its own; the best of several rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {"nothing": ["-c", ""]} | {
    words: ["-m", "ggpi", *words.split()] for words in ("--help", "list", "eq 3.2")
}


def seconds(arguments: list[str], rounds: int) -> float:
    """The quickest of some runs of Python with these arguments."""
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        took.append(time.perf_counter() - start)
    return min(took)


def measure(rounds: int = 5) -> dict[str, float]:
    return {words: seconds(arguments, rounds) for words, arguments in COMMANDS.items()}


def main() -> None:
    found = measure()
    print(", ".join(f"{words}: {value:.2f} s" for words, value in found.items()))
    path = Path(__file__).parent / "results" / "help_text.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
