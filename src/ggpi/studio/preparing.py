"""Agents whose programs are compiled, shared by pages that want the same settings."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import numpy as np

from ggpi._jax.jit import forget
from ggpi.studio import cores
from ggpi.studio.catalogue import Catalogue
from ggpi.studio.decisions import Decider, Settings, decide, decider, random_key
from ggpi.studio.worlds import World

PROGRAMS = 6
"""Compiled programs that are kept of each function: every γ and α has its own. That of a search holds 100 MB."""


def prepared(world: World, settings: Settings, formula: str, state: np.ndarray) -> Decider:
    """An agent whose programs are compiled; of pages that want the same settings, one compiles and the others wait."""
    with cores.in_turn(world.turns[hash(settings) % len(world.turns)]):
        made = world.agents.get(settings)
        if made is None:
            made = decider(world, settings, world.reward(formula))
            decide(made, world, state, key=random_key(0, 0, 0))
            world.agents.put(settings, made)
            forget(but=PROGRAMS)
            _return_memory()
    return made.with_reward(world.reward(formula))


def _return_memory() -> None:
    """What compilers have freed goes back to the system, where the C library can do that."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def warm(catalogue: Catalogue) -> None:
    """Prepares the first world, so that its page need not wait."""
    world = catalogue.open(catalogue.names[0])
    settings = Settings(world.depth, samples=world.samples)
    prepared(world, settings, world.formula, world.body(0).state)
