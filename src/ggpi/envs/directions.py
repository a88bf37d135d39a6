"""Directions in the plane, in the order in which all policies, models and tables name them."""

import numpy as np

DIRECTIONS = {"right": (1, 0), "up": (0, 1), "left": (-1, 0), "down": (0, -1)}
"""Name → (x, y)."""
HEADINGS = np.array(list(DIRECTIONS.values()), np.float32)
"""The same as unit vectors [4, 2]."""

DIAGONALS = {
    f"{side} {above}": (x * 0.5**0.5, y * 0.5**0.5)
    for above, y in (("up", 1), ("down", -1))
    for side, x in (("right", 1), ("left", -1))
}
"""Those in between, as unit vectors."""
EIGHT = np.array([*DIRECTIONS.values(), *DIAGONALS.values()], np.float32)
"""All eight as unit vectors [8, 2], diagonals last."""
