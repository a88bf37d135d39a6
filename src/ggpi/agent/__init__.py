"""The agent: plans over switching policies for any reward."""

from ggpi.agent.agent import GGPIAgent, Plan
from ggpi.agent.warnings import NoRewardWarning, UnfamiliarStateWarning

__all__ = ["GGPIAgent", "NoRewardWarning", "Plan", "UnfamiliarStateWarning"]
