"""Policy iteration with learned models: does depth 2 save iterations when nothing is exact?

Algorithm 1 with networks instead of tables, in a gridworld that is observed as noisy vectors
(`ggpi.lab.iteration.coin_corridor`). Iteration k

    1  learns μ_γ and μ_β of πₖ by CEMC, from episodes that start anywhere with a random action and continue with πₖ
    2  estimates Q^ν(x, a) of every ν ∈ Π and every action in a batch of states, by composing samples
    3  trains πₖ₊₁, a softmax network, on the greedy actions of max_ν Q^ν by cross-entropy

    newest    Π = {πₖ}: policy iteration
    gpi       Π = {π₀, …, πₖ}: GPI over all policies so far, their models kept
    depth-2   Π = {π₀ → πₖ, …, πₖ₋₁ → πₖ, πₖ}: GGPI with the switching policies that end in the newest
    depth-inf closed-loop switching among π₀, …, πₖ, on a jumpy graph that is built anew in every iteration

Each iteration of each method learns the models of one policy, from equally many episodes. Returns are exact, means
of V^π over all cells as shares of the optimum. The same loop with exact models and tables is the oracle.

The policy that always goes right knows the way that its greedy improvement forgets (Ex D.4): exact policy
iteration needs an iteration for every cell of the corridor, depth 2 needs two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.ghm import GHMs, joined_ghms
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.iteration.coin_corridor import CoinCorridor
from ggpi.lab.iteration.policies import (
    STARTS,
    best_values,
    episodes,
    exact_returns,
    first_policy,
    fitted_policy,
    score,
)
from ggpi.learning.fitting import fit
from ggpi.learning.losses import CEMC
from ggpi.learning.recipe import Recipe
from ggpi.planning.graph_building import jumpy_graph
from ggpi.policies.action_heads import CategoricalPolicy
from ggpi.switching import GSPs, compositions
from ggpi.types import Key

METHODS = {
    "newest": "policy iteration",
    "gpi": "GPI, all policies",
    "depth-2": "GGPI, depth 2",
    "depth-inf": "GGPI, depth ∞",
}
DEPTHS = (1, 2, "inf")
"""Of policy iteration with exact models."""
RECIPE = Recipe(VAEConfig(predict="state"), CEMC(), steps=20_000)


@dataclass(frozen=True)
class Config:
    length: int = 5
    """Cells of the corridor."""
    gamma: float = 0.9
    """Discount γ."""
    alpha: float = 0.1
    """Probability α of a switch after each step."""
    starts: tuple[str, ...] = ("right", "uniform")
    """First policies: right, uniform."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Sets Π to improve over: newest, gpi, depth-2, depth-inf."""
    iterations: tuple[int, ...] = (6, 2)
    """Improvements, for each of the first policies."""
    stated: float = 0.9
    """The return to reach, as a share of the optimum."""
    num_episodes: int = 5_000
    """Episodes of each policy: a random cell, a random action, then the policy."""
    episode_steps: int = 66
    """Steps of an episode: as many as CEMC needs, γ⁶⁶ < 10⁻³."""
    recipe: Recipe = RECIPE
    """How the models of one policy are trained."""
    num_states: int = 512
    """States in which Q is estimated."""
    num_samples: int = 256
    """Chains for each estimate of Q^ν(x, a)."""
    num_landmarks: int = 1_000
    """Landmarks of the graph of depth-inf."""
    num_jumps: int = 64
    """Jumps of each policy from each landmark."""
    policy_steps: int = 1_000
    """Training steps of a policy network."""
    num_seeds: int = 20
    """Runs of each kind."""
    seed: int = 0
    """Random seed of the first run."""
    skipped: int = 0
    """Seeds that are left out, because settings were chosen on them."""

    def __post_init__(self):
        if not set(self.starts) <= set(STARTS) or not set(self.methods) <= set(METHODS):
            raise ValueError(
                f"starts are of {list(STARTS)} and methods of {list(METHODS)}; got {self.starts} and {self.methods}"
            )
        fits = len(self.iterations) == len(self.starts) and min(self.iterations) > 0
        if not fits or self.num_seeds < 1 or not 0 < self.stated < 1:
            raise ValueError(f"iterations ≥ 1 for each start, num_seeds ≥ 1, 0 < stated < 1; got {self}")


PRESETS = {
    "tiny": Config(
        length=4,
        starts=("right",),
        methods=("depth-2", "depth-inf"),
        iterations=(1,),
        num_episodes=200,
        recipe=Recipe(VAEConfig(width=32, predict="state"), CEMC(), steps=500, learning_rate=3e-3),
        num_states=128,
        num_samples=32,
        num_landmarks=100,
        num_jumps=16,
        policy_steps=200,
        num_seeds=1,
    ),
    "cpu": Config(
        length=4,
        starts=("right",),
        iterations=(5,),
        num_episodes=1_000,
        recipe=Recipe(
            VAEConfig(width=64, predict="state"), CEMC(), steps=1_000, batch_size=128, learning_rate=3e-3
        ),
        num_states=96,
        num_samples=96,
        num_landmarks=300,
        policy_steps=500,
        num_seeds=3,
        skipped=10,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Solves the corridor again and again.

    Paper: Alg 1
    """
    limits = dict(zip(config.starts, config.iterations, strict=True))
    first = config.skipped + config.seed
    seeds = range(first, first + config.num_seeds)
    given = config.length, config.gamma, config.alpha
    cases = product(seeds, config.starts)
    runs = cells({f"{x}/seed-{seed}": partial(solve, config, x, limits[x], seed) for seed, x in cases})
    return {
        "stated": config.stated,
        "num_seeds": config.num_seeds,
        "iterations": limits,
        "methods": config.methods,
        "learned": {
            start: {
                method: summary([runs[f"{start}/seed-{seed}"][method] for seed in seeds], config.stated)
                for method in config.methods
            }
            for start in config.starts
        },
        "oracle": {
            start: {
                str(depth): summary([exact_returns(start, *given, depth, limits[start])], config.stated)
                for depth in DEPTHS
            }
            for start in config.starts
        },
    }


def solve(config: Config, start: str, iterations: int, seed: int) -> dict[str, list[float]]:
    """The returns of π₀, π₁, … of each method; with a single policy all methods are the same, so they share π₁."""
    world, key = CoinCorridor(config.length), jax.random.key(seed)
    planned = world.start(config.num_states, np.random.default_rng(seed))
    early, found = {}, {}
    for method in config.methods:
        policy, models, returns = first_policy(start), [], []
        for k in range(iterations):
            returns.append(score(world, policy, config.gamma))
            fit_key, plan_key, policy_key = jax.random.split(jax.random.fold_in(key, k), 3)
            new = early.get(k) or learn(config, world, policy, 1000 * seed + k, fit_key)
            early |= {k: new} if k < 2 else {}
            models = [new] if method == "newest" else [*models, new]
            q = values(config, method, world, joined_ghms(models), planned, plan_key)
            policy = fitted_policy(planned, q, config.policy_steps, key=policy_key)
        found[method] = [*returns, score(world, policy, config.gamma)]
    return found


def learn(config: Config, world: CoinCorridor, policy: CategoricalPolicy, seed: int, key: Key) -> GHMs:
    """μ_γ and μ_β of one policy, from episodes of its own."""
    return fit(
        [policy],
        episodes(world, policy, config.num_episodes, config.episode_steps, seed=seed),
        gamma=config.gamma,
        alpha=config.alpha,
        recipe=config.recipe,
        spec=world.spec,
        key=key,
    )


def values(
    config: Config, method: str, world: CoinCorridor, ghms: GHMs, states: np.ndarray, key: Key
) -> np.ndarray:
    """What a method makes greedy [B, A]."""
    if method != "depth-inf":
        gsps = improved_over(method, len(ghms.policies), config.alpha)
        return best_values(ghms, gsps, world.reward(), states, config.num_samples, key=key)
    graph_key, plan_key = jax.random.split(key)
    anywhere = world.start(10 * config.num_landmarks, np.random.default_rng(config.seed))
    graph = jumpy_graph(
        ghms, anywhere, num_landmarks=config.num_landmarks, num_jumps=config.num_jumps, key=graph_key
    )
    agent = GGPIAgent(
        ghms, world.reward(), depth="inf", graph=graph, first_actions="all", num_samples=config.num_samples
    )
    return agent.plan(states, key=plan_key).value.max(axis=1)


def improved_over(method: str, num_policies: int, alpha: float) -> GSPs:
    """The set Π of a method, for the models that it keeps."""
    newest = num_policies - 1
    depth, last = {"newest": (1, newest), "gpi": (1, None), "depth-2": (2, newest)}[method]
    return compositions(num_policies, depth, alpha, last=last)


def summary(runs: Sequence[Sequence[float]], stated: float) -> Metrics:
    """Returns after each iteration with 90% intervals, and the iterations until the stated one.

    A run that never reaches it counts with one iteration more than it had and as censored: the mean is a lower bound.
    """
    curves = np.array(runs)
    reached = curves >= stated
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), curves.shape[1])
    return {
        "runs": runs,
        "returns": [mean_interval(curves[:, k], level=0.9) for k in range(curves.shape[1])],
        "until": mean_interval(first, level=0.9),
        "censored": int((~reached.any(axis=1)).sum()),
    }
