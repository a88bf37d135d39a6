"""Other random numbers for the same tests: what fails with some of them is a coin, not a test.

`GGPI_TEST_SEED_OFFSET=3` adds 3 to every seed from which tests, experiments and environments start.
"""

import os
from collections.abc import Callable
from typing import Any

OFFSET = int(os.environ.get("GGPI_TEST_SEED_OFFSET", "0"))


def shift(offset: int) -> None:
    """Let the generators of NumPy, JAX and Gymnasium start `offset` seeds later."""
    if not offset:
        return
    import gymnasium.utils.seeding
    import jax
    import numpy as np

    for name in ("key", "PRNGKey"):
        setattr(jax.random, name, _later(getattr(jax.random, name), offset))
    np.random.default_rng = _later(np.random.default_rng, offset)
    gymnasium.utils.seeding.np_random = _later(gymnasium.utils.seeding.np_random, offset)


def _later(generator: Callable[..., Any], offset: int) -> Callable[..., Any]:
    def shifted(seed: Any = None, *args: Any, **kwargs: Any) -> Any:
        return generator(_moved(seed, offset), *args, **kwargs)

    return shifted


def _moved(seed: Any, offset: int) -> Any:
    """Seeds are numbers or lists of them; what is no number (None, a generator) stays as it is."""
    if isinstance(seed, list | tuple) and seed:
        return [*seed[:-1], _moved(seed[-1], offset)]
    try:
        return seed + offset
    except TypeError:
        return seed
