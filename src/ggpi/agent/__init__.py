"""The agent: plans over switching policies for any reward."""

from ggpi.agent.agent import GGPIAgent
from ggpi.agent.choosing import Plan
from ggpi.agent.fresh import FreshValues, fresh_values
from ggpi.agent.searching import Progress
from ggpi.agent.warnings import NoRewardWarning, UnfamiliarStateWarning
from ggpi.planning.unfamiliar import UnfamiliarCodeWarning

__all__ = [
    "FreshValues",
    "GGPIAgent",
    "NoRewardWarning",
    "Plan",
    "Progress",
    "UnfamiliarCodeWarning",
    "UnfamiliarStateWarning",
    "fresh_values",
]
