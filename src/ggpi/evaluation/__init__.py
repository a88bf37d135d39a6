"""Q of switching policies: exact, and sampled."""

from ggpi.evaluation.exact import evaluate
from ggpi.evaluation.queries import Estimate
from ggpi.evaluation.sampled import (
    evaluate_gsp_sampled,
    evaluate_janner_sampled,
    evaluate_markov_sampled,
    evaluate_pairs_sampled,
    evaluate_sampled,
    evaluate_states_sampled,
    ghm_draws,
)
from ggpi.evaluation.values import QValues

__all__ = [
    "Estimate",
    "QValues",
    "evaluate",
    "evaluate_gsp_sampled",
    "evaluate_janner_sampled",
    "evaluate_markov_sampled",
    "evaluate_pairs_sampled",
    "evaluate_sampled",
    "evaluate_states_sampled",
    "ghm_draws",
]
