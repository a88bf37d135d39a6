"""What a sample of a composed model is: one step at a time with β = 0, many with β > 0.

A chain of n models starts at (x₀, a₀) and draws

    X⁽¹⁾ ∼ μ^{π₁}_β(·|x₀, a₀),  …,  X⁽ⁿ⁻¹⁾ ∼ μ^{πₙ₋₁}_β(·|X⁽ⁿ⁻²⁾, A⁽ⁿ⁻²⁾),  X′ ∼ μ^{πₙ}_γ(·|X⁽ⁿ⁻¹⁾, A⁽ⁿ⁻¹⁾),

with A⁽ᵐ⁾ ∼ πₘ₊₁(·|X⁽ᵐ⁾). With β = 0 (α = 1) the model is P itself, whatever the policy: planning n − 1 single
steps and bootstrapping with μ_γ. With β > 0 each draw jumps over a Geometric(1−β) number of steps, so that a
chain covers (n−1)/(1−β) + 1/(1−γ) steps on average with the same n draws. For n = 1 β plays no part.

By Proposition 2.3 a draw of μ^π_β is the state after T ∼ Geometric(1−β) steps of π. Here the draws are made
in this way, by walking, so that the states in between exist and can be shown: white, since the model does
not show them. That the ends are samples of the composed model is checked against its exact mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ggpi import envs
from ggpi.ghm import GHMs, exact_ghms
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.mdp.rows import running_sums
from ggpi.mdp.tabular import TabularMDP
from ggpi.policies import TabularPolicy

Segments = Sequence[tuple[int, float | None]]
"""(policy, α) of each model in a chain; α is None for the last, whose horizon is γ."""


@dataclass(frozen=True)
class Config:
    gamma: float = 0.9
    """Horizon γ of the last model."""
    alpha: float = 1 / 9
    """Probability of a switch in the second row: β = γ(1−α) = 0.8. The first row has α = 1, so β = 0."""
    lengths: tuple[int, ...] = (1, 2, 3)
    """Numbers n of models in a chain, at most as many as `directions`."""
    directions: tuple[str, ...] = ("right", "up", "right")
    """π₁, π₂, …: each always moves in one direction."""
    height: int = 12
    """Rows of the open grid."""
    width: int = 22
    """Columns of the open grid; chains start near its lower left corner."""
    slip: float = 0.2
    """Probability that a move goes to another direction."""
    drawn: int = 3
    """Chains in each picture."""
    num_samples: int = 20_000
    """Chains for the means."""
    seed: int = 0
    """Seed of all chains; those of one n start from the same random numbers for every β."""

    def __post_init__(self):
        if not 1 <= min(self.lengths) <= max(self.lengths) <= len(self.directions):
            raise ValueError(f"lengths lie between 1 and {len(self.directions)}, got {self.lengths}")
        if not set(self.directions) <= set(envs.ACTIONS):
            raise ValueError(f"directions are among {envs.ACTIONS}, got {self.directions}")


PRESETS = {"tiny": Config(num_samples=2_000), "cpu": Config(), "paper": Config()}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Chains for β = 0 and β > 0 at each n.

    Paper: Fig 14
    """
    tasks = {
        f"alpha-{alpha:.3g}/n-{n}": partial(sample_chains, config, alpha, n)
        for alpha in (1.0, config.alpha)
        for n in config.lengths
    }
    results = cells(tasks)
    mdp = open_grid(config)
    return {
        "gamma": config.gamma,
        "directions": config.directions,
        "slip": config.slip,
        "cells": mdp.labels,
        "panels": list(results.values()),
    }


def open_grid(config: Config) -> TabularMDP:
    """A grid without inner walls."""
    edge, row = "#" * (config.width + 2), "#" + " " * config.width + "#"
    return envs.grid("\n".join([edge, *[row] * config.height, edge]), config.slip)


def sample_chains(config: Config, alpha: float, n: int) -> Metrics:
    """Chains of n models with one α: how far they go, where they end, and the first few in full.

    Paper: Fig 14
    """
    mdp = open_grid(config)
    first = [envs.ACTIONS.index(name) for name in config.directions]
    policies = [TabularPolicy.constant(mdp, a, envs.ACTIONS[a]) for a in first]
    ghms = exact_ghms(mdp, policies, config.gamma, alpha)
    segments = [(m, alpha if m < n - 1 else None) for m in range(n)]
    start, action = mdp.index((config.height - 1, 3)), first[0]
    rng = np.random.default_rng([config.seed, n])
    ends, steps, walks = walk(mdp, ghms, segments, start, action, config, rng)

    places = np.array(mdp.labels, float)
    beta = ghms.horizon(alpha)
    spread = 1 / np.sqrt(config.num_samples)
    return {
        "alpha": alpha,
        "beta": beta,
        "n": n,
        "gsp": " → ".join(config.directions[:n]),
        "first_action": envs.ACTIONS[action],
        "chains": [
            {"path": places[path].astype(int), "observed": observed, "actions": actions}
            for path, observed, actions in walks
        ],
        "mean_steps": float(steps.mean()),
        "steps_stderr": float(steps.std() * spread),
        "expected_steps": (n - 1) / (1 - beta) + 1 / (1 - config.gamma),
        "mean_end": places[ends].mean(axis=0),
        "end_stderr": places[ends].std(axis=0) * spread,
        "exact_mean_end": mean_end(ghms, segments, places)[start, action],
    }


def walk(
    mdp: TabularMDP,
    ghms: GHMs,
    segments: Segments,
    start: int,
    action: int,
    config: Config,
    rng: np.random.Generator,
):
    """Draws chains by walking: the ends X′, steps covered, and (path, observed places, actions) of the first."""
    x, a = np.full(config.num_samples, start), np.full(config.num_samples, action)
    total = np.zeros(config.num_samples, int)
    walks = [([start], [0], [action]) for _ in range(config.drawn)]
    for m, (policy, alpha) in enumerate(segments):
        lengths = rng.geometric(1 - ghms.horizon(alpha), config.num_samples)
        for t in range(lengths.max()):
            going = np.flatnonzero(lengths > t)
            x[going] = mdp.step(x[going], a[going], rng)
            a[going] = draw_actions(ghms.policies[policy], x[going], rng)
            for i in going[going < config.drawn]:
                walks[i][0].append(int(x[i]))
        total += lengths
        if m + 1 < len(segments):
            a = draw_actions(ghms.policies[segments[m + 1][0]], x, rng)
        for i, (path, observed, actions) in enumerate(walks):
            observed.append(len(path) - 1)
            if m + 1 < len(segments):
                actions.append(int(a[i]))
    return x, total, walks


def draw_actions(policy: TabularPolicy, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One action of the policy for each state."""
    return (running_sums(np.asarray(policy)[x]) <= rng.random((len(x), 1))).sum(axis=1)


def mean_end(ghms: GHMs, segments: Segments, f: np.ndarray) -> np.ndarray:
    """E[f(X′)|x, a] of a chain, exactly: the models applied from the last to the first.

    Paper: Def 6.1
    """
    (policy, alpha), *rest = segments
    if rest:
        ahead = mean_end(ghms, rest, f)
        f = np.einsum("xa,xan->xn", np.asarray(ghms.policies[rest[0][0]]), ahead)
    return ghms.segment(policy, alpha).expect(f)
