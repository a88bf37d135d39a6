"""Messages near the protocol of the studio, and formulas: each is read or rejected; nothing in them is run.

`python tests/fuzz/studio.py --cases 100000 --json FILE` counts how they end: benchmarks/results/studio-fuzz.json.
"""

import json
import math
import string
import sys
from pathlib import Path
from typing import Any

import numpy as np
from campaign import Campaign, main

from ggpi.rewards.grammar import DEEPEST, FUNCTIONS, LONGEST_PROGRAM, parse, stack_height
from ggpi.studio.protocol import CHECKS, KINDS, ProtocolError, read

NAMES = ("x", "y", "vx", "vy")
WORDS = (
    *(*FUNCTIONS, *NAMES, *"+-*/^()<>,.[]{};=\\'\"#@"),
    *(
        "**",
        "1",
        "2.5",
        "1e9",
        "1e308",
        "pi",
        "__import__",
        "lambda",
        "\x00",
        "λ",
        "\n",
        "os.system",
        "disc(1,2,3)",
    ),
)


def make(rng: np.random.Generator, folder: Path) -> str:
    """A message, often with a field that is wrong, or a text that is no longer JSON."""
    fields = {
        str(name): _value(rng) for name in rng.choice([*CHECKS, "other"], rng.integers(4), replace=False)
    }
    if rng.random() < 0.5:
        fields["formula"] = "".join(rng.choice(WORDS, rng.integers(14)))
    text = json.dumps({"type": str(rng.choice([*KINDS, "other"])), **fields})
    if rng.random() < 0.3:
        at = int(rng.integers(len(text)))
        text = text[:at] + str(rng.choice(list(string.printable))) + text[at + 1 :]
    return text


def _value(rng: np.random.Generator, depth: int = 0) -> Any:
    kinds = [
        None,
        True,
        int(rng.integers(-(10**12), 10**12)),
        int(rng.integers(4)),
        float(rng.normal()),
        math.inf,
    ]
    kinds += [math.nan, "".join(rng.choice(list(string.printable), 6)), "exhaustive"]
    if depth < 3:
        kinds += [[_value(rng, depth + 1)], {"a": _value(rng, depth + 1)}]
    return kinds[rng.integers(len(kinds))]


def check(text: str) -> str:
    """Read, with a formula that is one or not, or rejected."""
    found = read(text)
    assert isinstance(found, tuple(KINDS.values()))
    formula = getattr(found, "formula", None)
    if formula is None:
        return type(found).__name__
    try:
        program = parse(formula, NAMES)
    except ValueError:
        return "not a formula"
    assert 1 <= stack_height(program) <= DEEPEST and len(program) <= LONGEST_PROGRAM
    return "formula"


STUDIO = Campaign("studio", make, check, documented=(ProtocolError,))

if __name__ == "__main__":
    sys.exit(main(STUDIO))
