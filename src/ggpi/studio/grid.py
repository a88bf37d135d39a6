"""Four rooms in the studio: a finite MDP, in which models are exact for every γ and α."""

from __future__ import annotations

import numpy as np

from ggpi.envs.gridworlds import ACTIONS, four_rooms
from ggpi.ghm.base import GHMs, exact_ghms
from ggpi.mdp.tabular import TabularMDP
from ggpi.policies.tabular import TabularPolicy
from ggpi.studio.bodies import ArrayBody
from ggpi.studio.worlds import World

CODE = """\
mdp      = ggpi.envs.four_rooms()
names    = ("left", "down", "right", "up")
policies = [ggpi.TabularPolicy.constant(mdp, a, name) for a, name in enumerate(names)]
ghms     = ggpi.exact_ghms(mdp, policies, gamma={gamma}, alpha={alpha})
places   = np.array([(col, 12 - row) for row, col in mdp.labels], np.float32)
formula  = ggpi.rewards.read_formula({formula}, ("x", "y"))
reward   = ggpi.rewards.arrival(np.asarray(jax.vmap(formula)(places), float))
"""


def grid_world() -> World:
    """Sutton, Precup and Singh's four rooms: four policies, each of which walks in one direction; exact models."""
    mdp = four_rooms()
    policies = [TabularPolicy.constant(mdp, a, name) for a, name in enumerate(ACTIONS)]
    cells = np.array(mdp.labels)
    places = np.stack([cells[:, 1], 12.0 - cells[:, 0]], axis=1)
    free = set(map(tuple, places.astype(int).tolist()))
    solid = [(x, y) for x in range(13) for y in range(13) if (x, y) not in free]

    def at(x: float, y: float) -> np.ndarray | None:
        apart = np.abs(places - (x, y)).max(axis=1)
        return np.asarray(apart.argmin()) if apart.min() <= 0.5 else None

    def models(gamma: float, alpha: float) -> GHMs:
        return exact_ghms(mdp, policies, gamma, alpha)

    start = mdp.index((10, 3))
    return World(
        "four-rooms",
        "Four rooms",
        models(0.9, 1 / 9),
        ("x", "y"),
        (-0.5, -0.5, 12.5, 12.5),
        lambda seed: ArrayBody(mdp, _grid_start(mdp, start, seed), at, seed),
        "disc(9, 7, 1.6)",
        walls=tuple((x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in solid),
        places=places,
        dynamics=lambda: mdp,
        at=at,
        seconds=0.25,
        max_steps=60,
        samples=300,
        relearn=models,
        landmarks=lambda: np.arange(mdp.num_states),
        code=CODE,
        played="four-rooms",
        landmarks_code="states   = np.arange(mdp.num_states)\n",
    )


def _grid_start(mdp: TabularMDP, start: int, seed: int) -> np.ndarray:
    """The first episode starts in the corner room, the others anywhere."""
    return np.asarray(start if seed == 0 else np.random.default_rng(seed).integers(mdp.num_states))
