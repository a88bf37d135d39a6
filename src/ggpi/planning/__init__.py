"""Planning: which switching policy to follow, with few samples; and switching that looks at the state."""

from ggpi.planning.branch_and_bound import BranchAndBound
from ggpi.planning.closed_loop import evaluate_closed_loop
from ggpi.planning.exhaustive import Exhaustive
from ggpi.planning.halving import SequentialHalving
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.planning import plan
from ggpi.planning.plans import Plans, all_plans
from ggpi.planning.search import AbstractPlanner, Plan

__all__ = [
    "AbstractPlanner",
    "BranchAndBound",
    "Exhaustive",
    "JumpyGraph",
    "Plan",
    "Plans",
    "SequentialHalving",
    "all_plans",
    "evaluate_closed_loop",
    "plan",
]
