"""True futures for tests of diagnoses."""

import numpy as np

from ggpi.diagnosis import Truth


def pairs(num=8, count=300, action=5.0):
    """Pairs with futures whose displacements have deviation 1."""
    rng = np.random.default_rng(0)
    state = rng.normal(size=(num, 1))
    moved = rng.normal(size=(num, count, 1))
    moved /= moved.std()
    return Truth(state, np.full((num, 1), action), state[:, None] + moved, state[:, None] - moved)
