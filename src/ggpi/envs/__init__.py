"""Environments: gridworlds, the small MDPs of the paper's examples, and continuous ones.

Importing this package registers the continuous ones with Gymnasium, as `ggpi/PointMass-v0`, `ggpi/PointMaze-v0` and
`ggpi/SparseAnt-v0`. MuJoCo is imported when an ant or a maze is made.
"""

import gymnasium

from ggpi.envs.environment import Environment, GymEnv, GymVectorEnv
from ggpi.envs.examples import (
    binary_tree,
    chain,
    chain_reward_bound,
    deeper_is_worse,
    left_right,
    more_is_worse,
    one_state,
    three_states,
    with_memory,
)
from ggpi.envs.gridworlds import ACTIONS, four_rooms, grid, rooms
from ggpi.envs.maze import PointMaze
from ggpi.envs.pendulum import Pendulum
from ggpi.envs.point_mass import PointMass

__all__ = [
    "ACTIONS",
    "Environment",
    "GymEnv",
    "GymVectorEnv",
    "Pendulum",
    "PointMass",
    "PointMaze",
    "binary_tree",
    "chain",
    "chain_reward_bound",
    "deeper_is_worse",
    "four_rooms",
    "grid",
    "left_right",
    "more_is_worse",
    "one_state",
    "rooms",
    "three_states",
    "with_memory",
]

for _name, _one, _many in (
    ("ggpi/PointMass-v0", "ggpi.envs.point_mass:point_mass", "ggpi.envs.point_mass:point_masses"),
    ("ggpi/PointMaze-v0", "ggpi.envs.maze:point_maze", "ggpi.envs.maze:point_mazes"),
    ("ggpi/SparseAnt-v0", "ggpi.envs.ant:SparseAnt", "ggpi.envs.ant:SparseAntVector"),
):
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_one, vector_entry_point=_many)
