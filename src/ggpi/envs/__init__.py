"""Worlds: gridworlds and the small MDPs of the paper's examples."""

from ggpi.envs.gridworlds import ACTIONS, four_rooms, grid, rooms
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
