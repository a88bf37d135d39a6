"""One decision of an agent as the page shows it: plans with their values, and clouds of sampled states."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ggpi.agent.agent import GGPIAgent, Plan
from ggpi.planning import AbstractPlanner, BeamSearch, SequentialHalving
from ggpi.planning import Plan as Found
from ggpi.planning.landmarks import interpolation
from ggpi.planning.plans import plans_of
from ggpi.rewards import Reward, as_reward
from ggpi.studio.worlds import World
from ggpi.switching import GSP, compositions
from ggpi.types import Key

PLANNERS = ("exhaustive", "halving", "beam")
SHOWN_PLANS, SHOWN_SAMPLES = 24, 60
PICTURE_SAMPLES = 32
"""Of each plan, for the clouds of planners that keep no samples."""
SAVED = 3
"""Halving gets this share of the draws of exhaustive search."""


@dataclass(frozen=True)
class Settings:
    """How an agent plans."""

    depth: int
    """0 is the closed loop."""
    planner: str = "exhaustive"
    samples: int = 100
    gamma: float | None = None
    alpha: float | None = None


@dataclass(frozen=True, eq=False)
class Decider:
    """An agent for one reward, and the one that draws its clouds."""

    agent: GGPIAgent
    picture: GGPIAgent | None
    """None where the agent keeps its samples."""

    def with_reward(self, reward: Reward) -> Decider:
        """The same for another reward; nothing is compiled."""
        picture = None if self.picture is None else self.picture.with_reward(reward)
        return Decider(self.agent.with_reward(reward), picture)

    def values(self, states: np.ndarray) -> np.ndarray:
        """V of states in the closed loop, between landmarks."""
        graph = self.agent.graph
        assert graph is not None
        v = graph.solve(as_reward(self.agent.reward))
        rows, apart = graph.atlas.nearest(jnp.asarray(states))
        return np.asarray((interpolation(apart) * jnp.asarray(v)[rows]).sum(axis=-1))


def decider(world: World, settings: Settings, reward: Reward) -> Decider:
    """The agent of some settings; raises for those that the models do not allow."""
    ghms = world.models(settings.gamma, settings.alpha)
    alpha = settings.alpha or ghms.alphas[0]
    options: dict[str, Any] = {"num_samples": settings.samples, "first_actions": "head"}
    if settings.depth == 0:
        graph = world.graph(ghms, alpha)
        agent = GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples=settings.samples)
        return Decider(agent, None)
    gsps = compositions(len(ghms.policies), settings.depth, alpha)
    planner = planner_of(settings, len(ghms.policies), alpha)
    if planner is None:
        return Decider(GGPIAgent(ghms, reward, gsps=gsps, **options), None)
    picture = GGPIAgent(ghms, reward, gsps=gsps, num_samples=PICTURE_SAMPLES, first_actions="head")
    if isinstance(planner, BeamSearch):
        return Decider(GGPIAgent(ghms, reward, planner=planner), picture)
    return Decider(GGPIAgent(ghms, reward, gsps=gsps, planner=planner, **options), picture)


def planner_of(settings: Settings, num_policies: int, alpha: float) -> AbstractPlanner | None:
    """The planner of some settings; None for exhaustive search, which keeps samples."""
    if settings.planner == "exhaustive":
        return None
    if settings.planner == "beam":
        return BeamSearch(depth=settings.depth, alphas=alpha, num_samples=settings.samples)
    plans = plans_of(compositions(num_policies, settings.depth, alpha))
    budget = settings.samples * sum(plans.sizes) // SAVED
    return SequentialHalving(max(budget, SequentialHalving(budget).least(plans)))


@dataclass(frozen=True, eq=False)
class Decision:
    """What was decided in a state, ready to be sent."""

    action: np.ndarray
    policy: int
    about: Mapping[str, Any]
    places: np.ndarray
    """Of all shown samples [n, 2]."""


def decide(decider: Decider, world: World, state: np.ndarray, *, key: Key) -> Decision:
    """The choice in one state, how long it took, and its pictures."""
    begun = time.perf_counter()
    plan = decider.agent.plan(state, key=key)
    milliseconds = 1e3 * (time.perf_counter() - begun)
    drawn = plan if decider.picture is None else decider.picture.plan(state, key=key)
    rows = _rows(plan)
    order = np.argsort(-np.array([row["value"] for row in rows]), kind="stable")
    best = next(i for i, row in enumerate(rows) if row["chosen"])
    shown = [best, *(i for i in order.tolist() if i != best)][:SHOWN_PLANS]
    clouds = _clouds(drawn, world, [rows[i]["policies"] for i in shown])
    chosen = [rows[i] | {"nodes": nodes} for i, nodes in zip(shown, clouds.nodes_of_plans, strict=True)]
    about = {
        "plans": chosen,
        "count": len(rows),
        "nodes": clouds.nodes,
        "draws": _draws(plan),
        "survivors": [] if plan.search is None else _first(plan.search.survivors).tolist(),
        "milliseconds": round(milliseconds, 2),
    }
    action = np.asarray(plan.action)
    return Decision(action, rows[best]["policies"][0], about, clouds.places)


def _rows(plan: Plan) -> list[dict[str, Any]]:
    """Every plan with its value; of a search that draws plans, the kept ones."""
    found = plan.search
    if found is not None and found.plans is not None:
        return _searched(found)
    samples = None if found is None else _first(found.samples)
    return [
        {
            "policies": list(gsp.policies),
            "value": float(plan.value[i]),
            "stderr": float(plan.stderr[i]),
            "samples": None if samples is None else int(samples[i]),
            "chosen": i == int(plan.best),
        }
        for i, gsp in enumerate(plan.gsps)
    ]


def _searched(found: Found) -> list[dict[str, Any]]:
    """The distinct plans of a search by shooting; only the chosen one has a standard error."""
    assert found.plans is not None
    mean, best = _first(found.mean), int(_first(found.best))
    rows: dict[tuple[int, ...], dict[str, Any]] = {}
    policies = _first(found.plans.policies).tolist()
    for i in [best, *range(len(mean))]:
        row = tuple(_shortened(policies[i]))
        if row not in rows and np.isfinite(mean[i]):
            value, error = (float(mean[i]), np.inf)
            if i == best:
                value, error = float(_first(found.value)), float(_first(found.stderr))
            about = {"policies": list(row), "value": value, "stderr": error, "samples": None}
            rows[row] = about | {"chosen": i == best}
    return list(rows.values())


def _shortened(policies: list[int]) -> list[int]:
    """Without repeats of the last policy, which change nothing."""
    while len(policies) > 1 and policies[-1] == policies[-2]:
        policies = policies[:-1]
    return policies


def _first(part: Any) -> Any:
    """Of the only state of a batch: an array, or a number."""
    return np.asarray(part)[0]


def _draws(plan: Plan) -> int:
    if plan.search is not None:
        return int(_first(plan.search.draws))
    return sum(int(np.prod(block.shape[:2])) for level in plan.levels for block in level)


@dataclass(frozen=True, eq=False)
class _Clouds:
    """Samples at the ends of segments: nodes of a tree, each with the places of its samples."""

    nodes: list[dict[str, int]]
    nodes_of_plans: list[list[int]]
    places: np.ndarray


def _clouds(plan: Plan, world: World, wanted: list[list[int]]) -> _Clouds:
    """The clouds of some plans; segments that plans share are sent once."""
    index = {gsp.policies: i for i, gsp in enumerate(plan.gsps)}
    numbers: dict[tuple[int, int, int], int] = {}
    nodes, parts, of_plans = [], [], []
    for policies in wanted:
        gsp = GSP(tuple(policies), tuple([0.5] * (len(policies) - 1)))
        row, mine = index.get(gsp.policies), []
        paths = [] if row is None else list(zip(plan.paths[row], plan.levels, strict=False))
        for level, ((block, place), drawn) in enumerate(paths):
            node = (level, block, int(place))
            if node not in numbers:
                numbers[node] = len(nodes)
                samples = world.place(drawn[block][place][:SHOWN_SAMPLES])
                nodes.append({"policy": policies[level], "level": level, "count": len(samples)})
                parts.append(samples)
            mine.append(numbers[node])
        of_plans.append(mine)
    places = np.concatenate(parts) if parts else np.zeros((0, 2))
    return _Clouds(nodes, of_plans, places.astype(np.float32))


def random_key(seed: int, agent: int, t: int) -> Key:
    """The key of a decision: the same for the same moment of the same episode."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), agent), t)
