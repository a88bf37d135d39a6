"""Worlds: gridworlds and the small MDPs of the paper's examples."""

from ggpi.envs.examples import (
    binary_tree,
    chain,
    chain_reward_bound,
    deeper_is_worse,
    left_right,
    one_state,
    three_states,
    with_memory,
)
from ggpi.envs.gridworlds import ACTIONS, four_rooms, grid, rooms
from ggpi.envs.linear_gaussian import LinearGaussian
from ggpi.envs.ll2td_bias import ll2td_bias
from ggpi.envs.maze import PointMaze
from ggpi.envs.pendulum import Pendulum, set_pendulum
from ggpi.envs.point_mass import PointMass
from ggpi.envs.ring import Ring
from ggpi.envs.world import SettableEnv, World, WorldEnv, WorldVectorEnv

__all__ = [
    "ACTIONS",
    "LinearGaussian",
    "Pendulum",
    "PointMass",
    "PointMaze",
    "Ring",
    "SettableEnv",
    "World",
    "WorldEnv",
    "WorldVectorEnv",
    "binary_tree",
    "chain",
    "chain_reward_bound",
    "deeper_is_worse",
    "four_rooms",
    "grid",
    "left_right",
    "ll2td_bias",
    "one_state",
    "rooms",
    "set_pendulum",
    "three_states",
    "with_memory",
]
