"""Worlds: gridworlds and the small MDPs of the paper's examples."""

import gymnasium

from ggpi.envs.gridworlds import ACTIONS, four_rooms, grid, rooms
from ggpi.envs.point_mass import PointMass
from ggpi.envs.small import (
    binary_tree,
    chain,
    chain_reward_bound,
    deeper_is_worse,
    left_right,
    one_state,
    three_states,
    with_memory,
)

__all__ = [
    "ACTIONS",
    "PointMass",
    "binary_tree",
    "chain",
    "chain_reward_bound",
    "deeper_is_worse",
    "four_rooms",
    "grid",
    "left_right",
    "one_state",
    "rooms",
    "three_states",
    "with_memory",
]

if "ggpi/PointMass-v0" not in gymnasium.registry:
    gymnasium.register(
        "ggpi/PointMass-v0",
        "ggpi.envs.point_mass:point_mass",
        vector_entry_point="ggpi.envs.point_mass:point_masses",
    )
