"""The laboratory: one pair of modules per figure or table of the paper, all under one contract.

`ggpi.lab.run("chain")` runs an experiment as `ggpi run chain` does, and resumes it after an interruption. What an
experiment consists of is described in `ggpi.lab.contract`.
"""

from __future__ import annotations

import difflib
from importlib import import_module

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which takes long to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from ggpi.cluster import Executor

EXPERIMENTS: dict[str, tuple[str, str]] = {
    "four-rooms-transfer": (
        "ggpi.lab.finite.four_rooms_transfer",
        "Fig 3: zero-shot transfer in four-rooms, depth 1 to 4",
    ),
    "four-rooms-policy-iteration": (
        "ggpi.lab.finite.four_rooms_policy_iteration",
        "Fig 4: policy iteration with GGPI, iterations and samples against depth",
    ),
    "planner-regret": (
        "ggpi.lab.finite.planner_regret",
        "Planners: regret of the chosen plan against draws, among 16 to a million plans",
    ),
    "jumpy-graph-errors": (
        "ggpi.lab.finite.graph_errors",
        "Jumpy graphs against exact values: errors by jumps, landmarks and neighbours",
    ),
    "learned-policy-iteration": (
        "ggpi.lab.iteration.learned_policy_iteration",
        "Alg 1 with learned models: iterations of GPI and of GGPI at depth 2",
    ),
    "cetd-dynamics": (
        "ggpi.lab.finite.cetd_dynamics",
        "Fig 8, 9: paths of CETD on the simplex, two three-state MDPs",
    ),
    "counterexamples": (
        "ggpi.lab.finite.counterexamples",
        "Ex D.1-D.3, Fig 10-12: where improvement over non-Markov policies fails",
    ),
    "chain": (
        "ggpi.lab.finite.chain",
        "Ex D.4, Fig 13: two improvements by GGPI against k+1 by policy iteration",
    ),
    "beta-zero": (
        "ggpi.lab.finite.beta_zero",
        "Fig 14: samples of composed models for β = 0 and β > 0",
    ),
    "ant-policies": (
        "ggpi.lab.ant.base_policies",
        "App E.1: the ant's four base policies, alone and under random switching",
    ),
    "ant-transfer": (
        "ggpi.lab.ant.transfer",
        "Fig 5 left, Tab 1: the ant reaches targets by GGPI at depth 1 to 3, with an oracle and baselines",
    ),
    "ant-draws": (
        "ggpi.lab.ant.draws",
        "The ant at depth 2: success and time of a decision against its draws, for adaptive planners",
    ),
    "ant-visualise": (
        "ggpi.lab.ant.visualise",
        "Fig 6, 15, 16: what the ant's agents imagine, and what they do",
    ),
    "ant-training-budget": (
        "ggpi.lab.ant.training_budget",
        "Fig 19: success against training steps of the ant's models",
    ),
    "ant-depth-radius": (
        "ggpi.lab.ant.depth_radius",
        "When depth helps the ant: success against the target's radius and distance",
    ),
    "maze-transfer": (
        "ggpi.lab.maze.transfer",
        "PointMaze: targets behind corners, reached by policies that know directions, depth 1 to 4",
    ),
    "maze-closed-loop": (
        "ggpi.lab.maze.closed_loop",
        "PointMaze: targets behind many turns, reached by the closed loop on a jumpy graph",
    ),
    "maze-graph-settings": (
        "ggpi.lab.maze.graph_settings",
        "Mazes: what the closed loop needs of landmarks, jumps, training and α",
    ),
    "maze-policy-iteration": (
        "ggpi.lab.iteration.maze_policy_iteration",
        "Alg 1 in a maze with learned models: GPI, depth 2 and the closed loop",
    ),
    "ogbench-mazes": (
        "ggpi.lab.ogbench.mazes",
        "OGBench's point mazes, zero-shot: its tasks, reached by the closed loop on a jumpy graph",
    ),
    "ogbench-growth": (
        "ggpi.lab.ogbench.growth",
        "The closed loop in OGBench's giant maze: success and time against data, network and graph",
    ),
    "ogbench-falls": (
        "ggpi.lab.ogbench.falls",
        "How many of OGBench's ants lie on their backs while walkers are switched at random",
    ),
    "ogbench-errands": (
        "ggpi.lab.ogbench.errands",
        "OGBench's giant maze: three rooms in any order, and a corridor to avoid, with the same models",
    ),
    "discrete-control": (
        "ggpi.lab.discrete.control",
        "CartPole, Acrobot, LunarLander: which first actions to score with learned models",
    ),
    "ghm-losses": (
        "ggpi.lab.models.losses",
        "Fig 5 right, Fig 18: VAEs and flows trained by CEMC, CETD and LL2TD",
    ),
    "td-flows": (
        "ggpi.lab.models.td_flows",
        "Flow matching by temporal differences at γ = 0.99, against VAEs and spline flows",
    ),
    "horizons": (
        "ggpi.lab.models.horizons",
        "One network for all horizons, with and without consistency, against one per horizon",
    ),
    "one-pass": (
        "ggpi.lab.models.one_pass",
        "A student that samples in one pass: energy distance and samples per second by solver steps",
    ),
    "ghm-vs-one-step": (
        "ggpi.lab.models.one_step",
        "Fig 17: a GHM against a one-step model unrolled for a geometric time",
    ),
    "vae-ablations": (
        "ggpi.lab.models.ablations",
        "App E: learning rate, KL weight, latent size and target of VAE models",
    ),
}
"""Name → (module, one line). Nothing is imported until an experiment is run."""
FILMS = ("ant-policies", "ant-visualise")
"""Experiments that also make a film: their figure modules have a function `film(config, metrics)`."""


def run(
    name: str,
    config: Any = None,
    *,
    preset: str = "cpu",
    seed: int = 0,
    out: str | Path | None = None,
    force: bool = False,
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Runs an experiment, or resumes it, and returns its metrics as `metrics.json` holds them.

    Finished cells are stored in `out` and are not computed again when the same run is started once more. One process
    at a time may write to a directory.

    Args:
        name: One of `EXPERIMENTS`, such as `"chain"`.
        config: A `Config` of the experiment; by default that of `preset` with `seed`.
        preset: `"tiny"`, `"cpu"` or `"paper"`.
        seed: Seed of the preset's config; a given `config` has its own.
        out: Directory of the results; by default `results/NAME-PRESET-seedN`.
        force: Replace results of another experiment or config in `out`; other files are never touched.
        executor: Where cells are computed, such as `ggpi.cluster.processes(4)`; by default one after the other here. A
            run may be resumed with another executor.
    """
    contract = import_module(
        "ggpi.lab.contract"
    )  # not a statement: experiments do not depend on how they are run
    return contract.run(name, config, preset=preset, seed=seed, out=out, force=force, executor=executor)


def one_of(kind: str, given: str | None, valid: Iterable[str]) -> str:
    """Returns a valid name; any other raises an error that lists the valid ones, the most similar first."""
    if given is not None and given in valid:
        return given
    if given is None:
        raise ValueError(f"no name given; the {kind}s are: {', '.join(valid)}")
    similar = sorted(valid, key=lambda name: -difflib.SequenceMatcher(None, given, name).ratio())
    raise ValueError(f"no {kind} is called {given!r}; the {kind}s are: {', '.join(similar)}")
