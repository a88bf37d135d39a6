"""Planning: which switching policy to follow, with few samples; and switching that looks at the state."""

from ggpi.planning.beam_search import BeamSearch
from ggpi.planning.branch_and_bound import BranchAndBound
from ggpi.planning.closed_loop import evaluate_closed_loop
from ggpi.planning.cross_entropy import CrossEntropy
from ggpi.planning.exhaustive import Exhaustive
from ggpi.planning.halving import SequentialHalving
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.planning import plan
from ggpi.planning.plans import Plans, all_plans
from ggpi.planning.proposals import future_codes
from ggpi.planning.random_shooting import RandomShooting
from ggpi.planning.search import AbstractPlanner, Plan
from ggpi.planning.shooting import AbstractShooter

__all__ = [
    "AbstractPlanner",
    "AbstractShooter",
    "BeamSearch",
    "BranchAndBound",
    "CrossEntropy",
    "Exhaustive",
    "JumpyGraph",
    "Plan",
    "Plans",
    "RandomShooting",
    "SequentialHalving",
    "all_plans",
    "evaluate_closed_loop",
    "future_codes",
    "plan",
]
