"""OGBench's mazes, zero-shot: closed-loop switching on a jumpy graph, in OGBench's own environments.

Eight policies know directions and nothing of walls: constant actions of a ball, and walkers of an ant that learned in
the open. One flow-matching network learns the maze from our own transitions of them; goals appear in episodes only.
Environments, tasks and success are OGBench's.

    closed loop       a graph of landmarks, built once and solved for each goal; one jump from the true state
    depth m           m policies in a row; at depth 3 with fewer samples of each plan
    halving           plans of depth 3, sampled adaptively, with memory of the last decision
    cross-entropy     plans of depth 4, drawn from a distribution that is fitted to the best ones
    one-step model    walks of the policies, each with one switch, unrolled in the network at horizon 0
    recorded steps    shortest ways over recorded transitions between the same landmarks; no model
    guide             knows the maze: the upper bound

In the medium mazes all agents are compared, elsewhere a few. In ant mazes agents choose a policy, which acts until the
next decision. Agents other than the closed loop have the models of the first seed.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.envs.ogbench_maze import MAZES, OGBenchMaze
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab import agents, one_of
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.maze.closed_loop_models import Sizes
from ggpi.lab.maze.recorded_search import recorded_choice
from ggpi.lab.maze.tasks import guide
from ggpi.lab.maze.value_maps import value_map
from ggpi.lab.ogbench import choosers, walkers
from ggpi.lab.ogbench.before import describe, jump_errors, phases
from ggpi.lab.ogbench.episodes import REPORTED, by_task, play
from ggpi.lab.ogbench.models import Training, data_of, graph_of, kind_of, models
from ggpi.lab.ogbench.planners import planner_of
from ggpi.policies import PolicyBank
from ggpi.types import Policy

RANDOM_TURN = 4
"""Longest turn of random switching, in decisions."""
OTHERS = {
    "depth-1": "depth 1",
    "depth-2": "depth 2",
    "depth-3": "depth 3",
    "halving": "halving, depth 3",
    "cross-entropy": "cross-entropy, depth 4",
    "mpc": "MPC, one-step model",
    "recorded": "recorded steps",
    "random": "random switching",
    "directions": "one direction, mean of eight",
    "guide": "guide",
}
"""Agents beside the closed loop."""
FEW = ("depth-2", "recorded", "guide")
FEW_OF_ANTS = ("depth-2", "recorded", "random", "guide")
OF_BALLS = ("mpc",)
"""Agents that act in point mazes only; models of ants predict places alone, which cannot be unrolled step by step."""
OF_ANTS = tuple(name for name in OTHERS if name not in OF_BALLS)


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    maze: str = "pointmaze-giant"
    """pointmaze- or antmaze-, and medium, large, giant or teleport."""
    num_models: int = 3
    """Seeds of models."""
    others: tuple[str, ...] = ()
    """Other agents; none: all in the medium mazes, elsewhere depth-2, recorded and guide."""
    episodes: int = 50
    """Episodes of the closed loop for each task and seed of models."""
    few_episodes: int = 20
    """Of the other agents: the first ones of all."""
    max_steps: int = 1_000
    """Steps of an episode, at most OGBench's 1,000."""
    hold: int = 5
    """Steps between decisions."""
    num_transitions: int = 1_000_000
    """Transitions that models learn from; OGBench's datasets have as many."""
    training_steps: int = 20_000
    """Steps of training."""
    width: int = FlowMatchingConfig.width
    """Units of each layer of the network."""
    num_landmarks: int = 4_000
    """Landmarks of the graph."""
    num_jumps: int = 16
    """Jumps of each policy from each landmark."""
    num_neighbours: int = 3
    """Landmarks that V is interpolated from."""
    samples: int = 16
    """Samples for each policy of the closed loop, and for each plan of depth 2."""
    draws: int = 4_096
    """Draws of a decision by halving and, about, by the cross-entropy method."""
    num_checked: int = 32
    """Landmarks from which the first models' jumps are compared with simulated ones; 0: none."""
    num_walkers: int = 100
    """Ants that switch at random for as long as an episode, to see how many fall; in ant mazes only, 0: none."""
    alpha: float = 0.0
    """Of jumps; 0: that of the body, 0.3 for balls and 0.1 for ants."""

    def __post_init__(self):
        one_of("maze", self.maze, MAZES)
        for name in self.others:
            one_of("agent", name, OTHERS)
            if self.has_ants and name in OF_BALLS:
                raise ValueError(f"{name} acts in point mazes only; leave it out of others")

    @property
    def has_ants(self) -> bool:
        return self.maze.startswith("antmaze")

    @property
    def compared(self) -> tuple[str, ...]:
        """The other agents of this maze."""
        every, some = (OF_ANTS, FEW_OF_ANTS) if self.has_ants else (tuple(OTHERS), FEW)
        return self.others or (every if self.maze.endswith("medium") else some)

    @property
    def policies(self) -> list[Policy]:
        """Eight directions."""
        return list(kind_of(self.maze).policies())

    @property
    def playing(self) -> Metrics:
        """Limits of episodes, and the policies that agents choose from where they do not give actions."""
        bank = PolicyBank(self.policies) if self.has_ants else None
        return {"hold": self.hold, "max_steps": self.max_steps, "bank": bank}

    @property
    def sizes(self) -> Sizes:
        return Sizes(
            self.num_landmarks, self.num_jumps, self.num_neighbours, self.alpha or kind_of(self.maze).alpha
        )


PRESETS = {
    "tiny": Config(
        maze="pointmaze-medium",
        num_models=1,
        others=("depth-1", "mpc", "recorded", "random", "guide"),
        episodes=1,
        few_episodes=1,
        max_steps=6,
        num_transitions=4_096,
        training_steps=20,
        num_landmarks=100,
        num_jumps=4,
        samples=4,
        num_checked=2,
        num_walkers=8,
    ),
    "cpu": Config(episodes=20, few_episodes=2, num_transitions=400_000, training_steps=3_000, draws=1_024),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Models, graphs, then episodes of every agent."""
    seeds, world = range(config.num_models), OGBenchMaze(config.maze)
    jobs: Metrics = {}
    for s in seeds:
        jobs |= {
            f"graph/{s}": partial(describe, training_of(config, s), config.sizes),
            f"closed-loop/{s}": partial(loop, config, s),
        }
        if s == 0 and config.num_checked:
            training = training_of(config, s)
            jobs |= {"jumps": partial(jump_errors, training, config.sizes, config.num_checked)}
        jobs |= {"picture": partial(picture, config)}  # of the first seed
        jobs |= {name: partial(compare, config, name) for name in config.compared}
    if config.has_ants and config.num_walkers:
        jobs |= {"walkers": partial(walkers_of, config)}
    results = cells(jobs)
    found = {"closed loop": [results[f"closed-loop/{s}"] for s in seeds]}
    found |= {OTHERS[name]: [results[name]] for name in config.compared}
    low, high = world.bounds
    return {
        "maze": config.maze,
        "free": world.free,
        "low": low,
        "high": high,
        "tasks": list(world.tasks),
        "num_models": config.num_models,
        "episodes": config.episodes,
        "few_episodes": config.few_episodes,
        "hold": config.hold,
        "transitions": config.num_transitions,
        "graphs": [results[f"graph/{s}"] for s in seeds],
        "seconds": [
            phases(training_of(config, s), results[f"graph/{s}"], results[f"closed-loop/{s}"]) for s in seeds
        ],
        "success": {name: by_task(parts, list(world.tasks)) for name, parts in found.items()},
        "milliseconds": {
            name: 1e3 * float(np.mean([part["seconds_per_plan"] for part in parts]))
            for name, parts in found.items()
        },
        "picture": results["picture"],
    } | {name: results[name] for name in ("walkers", "jumps") if name in results}


def training_of(config: Config, seed: int) -> Training:
    """What the models of a seed are trained with."""
    recipe = kind_of(config.maze).recipe
    model = cast("FlowMatchingConfig", recipe.model)
    recipe = replace(recipe, model=replace(model, width=config.width), steps=config.training_steps)
    return Training(config.maze, seed, config.num_transitions, recipe)


def walkers_of(config: Config) -> Metrics:
    """How the ants' policies walk."""
    world = OGBenchMaze(config.maze)
    return walkers.measured(
        world, config.policies, config.num_walkers, config.max_steps, REPORTED + config.seed
    )


def loop(config: Config, seed: int) -> Metrics:
    """Episodes of the closed loop, and the seconds that they took, solving for goals included."""
    decide, begun = closed_loop(config, seed), time.perf_counter()
    return measured(config, decide, config.episodes) | {"seconds": time.perf_counter() - begun}


def closed_loop(config: Config, seed: int) -> agents.Decide:
    """The closed loop with the models of a seed."""
    training, radius = training_of(config, seed), OGBenchMaze(config.maze).radius
    ghms, graph = models(training).with_alpha(config.sizes.alpha), graph_of(training, config.sizes)
    if config.has_ants:
        return choosers.planner(ghms, radius, depth="inf", graph=graph, num_samples=config.samples)
    return agents.closed_loop(ghms, graph, config.samples, radius)


def compare(config: Config, name: str) -> Metrics:
    """Episodes of another agent, with the models of the first seed."""
    if name != "directions":
        return measured(config, agent_of(config, name), config.few_episodes)
    alone = choosers.alone if config.has_ants else partial(agents.alone, config.policies)
    each = [measured(config, alone(k), config.few_episodes) for k in range(len(config.policies))]
    seconds = float(np.mean([one["seconds_per_plan"] for one in each]))
    return {"steps": np.concatenate([one["steps"] for one in each]), "seconds_per_plan": seconds}


def agent_of(config: Config, name: str) -> agents.Decide:
    """An agent by its name: of a ball it gives actions, of an ant it chooses policies."""
    training, world, policies = training_of(config, 0), OGBenchMaze(config.maze), config.policies
    if name == "recorded":
        choose = recorded_choice(graph_of(training, config.sizes), data_of(training), world.radius)
        return choose if config.has_ants else agents.acting(choose, policies)
    if name == "random":
        if config.has_ants:
            return choosers.random_switching(len(policies))
        return agents.random_switching(policies, RANDOM_TURN)
    if name == "guide":
        return choosers.guide(world) if config.has_ants else guide(world, policies, world.safe)
    ghms = models(training).with_alpha(config.sizes.alpha)
    return planner_of(name, ghms, world.radius, config.samples, config.draws, config.has_ants)


def measured(config: Config, decide: agents.Decide, episodes: int) -> Metrics:
    """Steps to the goal in each episode (0: not reached), and the time of a decision."""
    world, timed = OGBenchMaze(config.maze), agents.Timed(decide)
    found = play(world, timed, list(world.tasks), episodes, REPORTED + config.seed, **config.playing)
    return {"steps": np.array([one.steps for one in found]), "seconds_per_plan": timed.seconds_per_decision}


def picture(config: Config) -> Metrics:
    """V of the landmarks for a goal of the first task, the best policy at each, and the path of an episode."""
    training, world = training_of(config, 0), OGBenchMaze(config.maze)
    graph, ghms = graph_of(training, config.sizes), models(training).with_alpha(config.sizes.alpha)
    seed = REPORTED + 500 + config.seed
    (one,) = play(world, closed_loop(config, 0), [1], 1, seed, **config.playing)
    reward = world.reward(one.goal)
    agent = GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples=config.samples)
    return {
        "target": one.goal,
        "radius": world.radius,
        **value_map(agent, graph, config.seed),
        "path": np.round(one.path, 3),
        "steps": one.steps,
    }
