"""Policy iteration in a maze with learned models: GPI, depth 2 and the closed loop, for one target.

The first four policies push a ball in one direction each; none knows the maze or the target. Iteration k

    1  chooses the best policy so far in states of the data: by GPI, by plans of depth 2, or by the closed loop
    2  trains πₖ, a network that says which direction to take, on these choices
    3  learns the models of πₖ from its own episodes by TD²-CFM, and adds it to the policies

Models of the directions are learned once and shared. The return of πₖ is simulated, from anywhere at rest, in percent
of that of a guide who knows the maze.
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.data.transitions import Transitions
from ggpi.envs import GymVectorEnv
from ggpi.envs.maze import PointMaze
from ggpi.ghm import GHMs, joined_ghms
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab.agents import Decide, sample_policy
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.iteration.maze_policies import directions, fitted
from ggpi.lab.maze import tasks as maze
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import Recipe
from ggpi.planning.graph_building import jumpy_graph
from ggpi.policies.bank import PolicyBank
from ggpi.rewards import target
from ggpi.rollout.collection import collect
from ggpi.types import Key, Policy

METHODS = {"gpi": "GPI", "depth-2": "GGPI, depth 2", "depth-inf": "GGPI, depth ∞"}
EPISODE = 60
"""Steps of an episode."""
RECIPE = Recipe(
    FlowMatchingConfig(predict="state", num_steps=4), TD2CFM(n_step=EPISODE), steps=10_000, learning_rate=2e-3
)


@dataclass(frozen=True)
class Config:
    maze: str = "Medium"
    """UMaze, Medium, Large, or a drawing; the target is its last free cell."""
    gamma: float = 0.97
    """Discount γ."""
    alpha: float = 0.1
    """Probability α of a switch after each step."""
    methods: tuple[str, ...] = tuple(METHODS)
    """How policies are chosen: gpi, depth-2, depth-inf."""
    iterations: int = 4
    """Policies that are learned."""
    num_transitions: int = 200_000
    """Transitions for each policy."""
    recipe: Recipe = RECIPE
    """How models are trained."""
    num_states: int = 8_000
    """States in which the best policy is chosen."""
    num_samples: int = 64
    """Chains for each choice and plan; at depth 2 and ∞ for each policy of it."""
    num_landmarks: int = 2_000
    """Landmarks of the closed loop's graph."""
    policy_steps: int = 2_000
    """Training steps of a policy network."""
    num_starts: int = 1_000
    """Simulated episodes of a return."""
    num_seeds: int = 5
    """Runs of each method."""
    seed: int = 0
    """Random seed of the first run."""

    def __post_init__(self):
        if not set(self.methods) <= set(METHODS) or self.iterations < 1 or self.num_seeds < 1:
            raise ValueError(
                f"methods are of {list(METHODS)}, iterations and num_seeds at least 1; got {self}"
            )


PRESETS = {
    "tiny": Config(
        maze="UMaze",
        methods=("depth-inf",),
        iterations=1,
        num_transitions=2_048,
        recipe=replace(RECIPE, model=FlowMatchingConfig(width=32, predict="state", num_steps=4), steps=40),
        num_states=200,
        num_samples=4,
        num_landmarks=100,
        policy_steps=50,
        num_starts=20,
        num_seeds=1,
    ),
    "cpu": Config(
        maze="UMaze",
        iterations=3,
        num_transitions=40_000,
        recipe=replace(RECIPE, steps=750),
        num_states=2_000,
        num_samples=32,
        num_landmarks=1_000,
        policy_steps=1_000,
        num_starts=400,
        num_seeds=3,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Iterates every method with every seed."""
    seeds = range(config.seed, config.seed + config.num_seeds)
    jobs = {f"{m}/seed-{s}": partial(solve, config, m, s) for s, m in product(seeds, config.methods)}
    results = cells({"guide": partial(guided, config)} | jobs)
    guide, found = results["guide"], {}
    for method in config.methods:
        curves = np.array([results[f"{method}/seed-{s}"] for s in seeds]) / guide
        found[method] = [mean_interval(column, level=0.9) for column in curves.T]
    return {"maze": config.maze, "num_seeds": config.num_seeds, "guide": guide, "returns": found}


def solve(config: Config, method: str, seed: int) -> list[float]:
    """The return of the best direction, then of π₁, π₂, …"""
    parts, policies = [first_models(config, seed)], list[Policy](maze.policies())
    returns = [max(simulated(config, policy) for policy in policies)]
    for k in range(config.iterations):
        choice_key, policy_key, fit_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), k), 3)
        states = first_data(config, seed).state[:: config.num_transitions * 4 // config.num_states]
        chosen = choices(config, method, joined_ghms(parts), states, choice_key)
        best = directions(policies, chosen, states)
        policies.append(fitted(states, best, config.policy_steps, maze.SPEED, key=policy_key))
        returns.append(simulated(config, policies[-1]))
        if k + 1 < config.iterations:
            data = recorded(config, policies[-1:], 100 * seed + k + 1)
            parts.append(learned(config, policies[-1:], data, fit_key))
    return returns


def choices(config: Config, method: str, ghms: GHMs, states: np.ndarray, key: Key) -> np.ndarray:
    """The policy [B] that a method would act with in each state."""
    reward = target(goal(config), maze.RADIUS)
    if method == "gpi":
        return GGPIAgent(ghms, reward, depth=1, num_samples=config.num_samples).plan(states, key=key).best
    if method == "depth-2":
        samples = max(1, config.num_samples // len(ghms.policies))
        plan = GGPIAgent(ghms, reward, depth=2, num_samples=samples).plan(states, key=key)
        return np.array([gsp.head for gsp in plan.gsps])[plan.best]
    graph_key, plan_key = jax.random.split(key)
    graph = jumpy_graph(ghms, states, num_landmarks=min(config.num_landmarks, len(states)), key=graph_key)
    agent = GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples=config.num_samples)
    return agent.plan(states, key=plan_key).best


def goal(config: Config) -> np.ndarray:
    """The middle of the last free cell."""
    world = PointMaze(config.maze)
    return world.centre(*np.argwhere(world.free)[-1])


def recorded(config: Config, policies: list[Policy], seed: int) -> Transitions:
    """Episodes of each policy from anywhere."""
    env = GymVectorEnv(PointMaze(config.maze), 64, EPISODE)
    count = config.num_transitions * len(policies)
    return collect(env, policies, count, switch_every=EPISODE, seed=maze.DATA + seed)


def learned(config: Config, policies: list[Policy], data: Transitions, key: Key) -> GHMs:
    """μ_γ and μ_β of each policy."""
    spec, recipe = PointMaze(config.maze).spec, config.recipe
    return fit(policies, data, gamma=config.gamma, alpha=config.alpha, recipe=recipe, spec=spec, key=key)


@lru_cache(maxsize=1)
def first_data(config: Config, seed: int) -> Transitions:
    """Episodes of the four directions."""
    return recorded(config, list(maze.policies()), 100 * seed)


@lru_cache(maxsize=1)
def first_models(config: Config, seed: int) -> GHMs:
    """The models of the four directions: all methods share them."""
    return learned(config, list(maze.policies()), first_data(config, seed), jax.random.key(seed))


def simulated(config: Config, policy: Policy) -> float:
    """The mean discounted return of a policy from anywhere at rest."""
    bank = PolicyBank([policy])
    return _simulated(config, lambda states, goals, key: np.asarray(sample_policy(bank, states, key)))


def guided(config: Config) -> float:
    """That of a guide who knows the maze."""
    world = PointMaze(config.maze)
    decide = maze.guide(world, maze.policies(), world.free)
    return _simulated(config, decide)


def _simulated(config: Config, decide: Decide) -> float:
    world, place, rng = PointMaze(config.maze), goal(config), np.random.default_rng(maze.REPORTED)
    states, found = world.start(config.num_starts, rng), np.zeros(config.num_starts)
    goals, keys = np.tile(place, (len(states), 1)), jax.random.split(jax.random.key(0), 4 * EPISODE)
    for t, key in enumerate(keys):
        states = world.step(states, decide(states.astype(np.float32), goals, key))
        found += config.gamma**t * (np.linalg.norm(states[:, :2] - place, axis=1) <= maze.RADIUS)
    return float(found.mean())
