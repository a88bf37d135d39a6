"""Policies: tables, linear feedback, networks, functions of the user, and files of Stable-Baselines3."""

from ggpi.policies.bank import PolicyBank
from ggpi.policies.linear import (
    LinearPolicy,
    direction_policies,
    maze_policies,
    ogbench_policies,
    pendulum_policies,
)
from ggpi.policies.tabular import TabularPolicy

__all__ = [
    "LinearPolicy",
    "PolicyBank",
    "TabularPolicy",
    "direction_policies",
    "maze_policies",
    "ogbench_policies",
    "pendulum_policies",
]
