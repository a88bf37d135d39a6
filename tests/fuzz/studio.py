"""Messages near the protocol of the studio: each is read or rejected, and formulas never run code."""

import json
import math
import random
import string

from ggpi.rewards.grammar import FUNCTIONS, parse
from ggpi.studio.protocol import CHECKS, KINDS, ProtocolError, read

from campaign import main

NAMES = ("x", "y", "vx", "vy")
WORDS = [*FUNCTIONS, *NAMES, *"+-*/^()<>,.", "**", "1", "2.5", "1e9", "1e308", "pi", "__import__", "'", "[", "]", "lambda"]


def value(rng: random.Random, depth: int = 0) -> object:
    """Any JSON."""
    kinds = [None, True, rng.randint(-(10**12), 10**12), rng.uniform(-1e9, 1e9), math.inf, "".join(rng.choices(string.printable, k=6))]
    if depth < 3:
        kinds += [[value(rng, depth + 1)], {"a": value(rng, depth + 1)}]
    return rng.choice(kinds)


def message(rng: random.Random) -> str:
    """A message, often with a field that is wrong, or a text that is no longer JSON."""
    fields = {name: value(rng) for name in rng.sample([*CHECKS, "other"], rng.randrange(4))}
    if rng.random() < 0.3:
        fields["formula"] = "".join(rng.choices(WORDS, k=rng.randrange(12)))
    text = json.dumps({"type": rng.choice([*KINDS, "other", 3]), **fields})
    if rng.random() < 0.3:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(string.printable) + text[at + 1 :]
    return text
