"""A tiny experiment for tests: squares of numbers, with a task that can be interrupted."""

import dataclasses
from functools import partial

from ggpi.lab.cells import compute

CALLS: list[int] = []
STOP_AT: list[int] = []


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 0
    """Random seed."""
    gamma: float = 0.9
    """Discount γ."""
    numbers: tuple[int, ...] = (1, 2, 3)
    """What to square."""

    def __post_init__(self):
        if not 0 <= self.gamma < 1:
            raise ValueError(f"gamma is {self.gamma}, expected 0 ≤ gamma < 1")


PRESETS = {"tiny": Config(numbers=(1, 2)), "cpu": Config(), "paper": Config(numbers=(1, 2, 3, 4))}


def square(n):
    if n in STOP_AT:
        raise KeyboardInterrupt
    CALLS.append(n)
    return {"square": n**2}


def run(config, cells=compute):
    results = cells({f"squares/n-{n}": partial(square, n) for n in config.numbers})
    return {"gamma": config.gamma, "squares": tuple(result["square"] for result in results.values())}
