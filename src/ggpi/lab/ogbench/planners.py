"""Planners of finite depth in OGBench's mazes, by their names in `ogbench-mazes`."""

from functools import partial

from ggpi.ghm.base import GHMs
from ggpi.lab import agents
from ggpi.lab.ogbench import choosers
from ggpi.lab.walks import Walks, over_walks
from ggpi.planning import CrossEntropy, Exhaustive, SequentialHalving

WALKS = partial(Walks, 64, 100, 0.05)
"""Of the one-step model, for a discount and a radius."""


def planner_of(
    name: str, ghms: GHMs, radius: float, num_samples: int, draws: int, has_ants: bool
) -> agents.Decide:
    """A planner by its name.

    Args:
        name: of the planner.
        ghms: the models.
        radius: of goals.
        num_samples: of each plan of depth 2.
        draws: of a decision of the others.
        has_ants: whether policies are chosen, instead of actions.
    """
    warm = choosers.warm_planner if has_ants else agents.WarmPlanner
    if name == "halving":
        search = SequentialHalving(draws, value_samples=1, factor=8, memory=0.5)
        return warm(ghms, 3, radius, search)
    if name == "mpc":
        network = ghms.shared_network().at_horizon(0.0)
        return over_walks(network.at(network.condition[0]), ghms.policies, WALKS(ghms.gamma, radius))
    if name == "cross-entropy":
        samples = max(1, num_samples // 4)
        plans = max(9, draws // (4 * 4 * samples))
        search = CrossEntropy(plans, depth=4, num_samples=samples, value_samples=1)
        return warm(ghms, None, radius, search)
    depth = int(name.removeprefix("depth-"))
    samples = max(1, round(num_samples * len(ghms.policies) ** float(2 - depth)))
    search = Exhaustive(num_samples=samples)
    if has_ants:
        return choosers.planner(ghms, radius, depth=depth, num_samples=samples, planner=search)
    return agents.planner(ghms, depth, samples, radius, planner=search)
