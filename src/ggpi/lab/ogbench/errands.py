"""Rewards that are not goals, with the models of `ogbench-mazes`: a tour, a patrol, and a corridor to avoid.

*Three rooms.* An agent remembers which rooms S are left. Let V_S(x) be the best E γ^T of the time T when the last of
them is visited. A room i that is reached first leaves S∖i, so with V_∅ = 1

    ρ_S(x) = (1−γ) Σ_{i ∈ S} V_{S∖i}(room i) · 1[x in room i]

is the reward whose value is V_S: staying in room i has the value V_{S∖i}. Seven solutions of one graph plan the tour.
Beside it: always the best single room (`nearest first`), the rooms in the order they are named, and a guide who knows
the maze and the shortest tour.

*A patrol.* Two rooms are visited in turn, again and again (`patrols`).

*A corridor.* 1 at the goal of a task, minus a penalty in each step in three cells in the middle of its shortest route.

Episodes are stepped by `OGBenchMaze.step`, which a test compares with OGBench's own, because these episodes do not end
at OGBench's goals.
"""

import itertools
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.envs.ogbench_maze import MAZES, OGBenchMaze
from ggpi.lab import one_of
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.maze.tasks import guide
from ggpi.lab.maze.value_maps import value_map
from ggpi.lab.ogbench import mazes
from ggpi.lab.ogbench.episodes import REPORTED, success
from ggpi.lab.ogbench.errand_rewards import avoiding, rooms, tour_weights
from ggpi.lab.ogbench.models import ALPHA, graph_of, models
from ggpi.lab.ogbench.patrols import PATROLS, Choose, patrol, patroller
from ggpi.lab.ogbench.places import corridor_of, detour_tasks, reachable, tour_length
from ggpi.planning import JumpyGraph
from ggpi.policies import ogbench_policies
from ggpi.types import Key

TOURS = ("any order", "nearest first", "named order", "guide")
PENALTY = 10.0


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    maze: str = "pointmaze-giant"
    """A point maze of ogbench-mazes."""
    episodes: int = 20
    """Tours of each agent, each with other rooms, and a fifth of it for each of five tasks with a corridor."""
    patrols: int = 5
    """Patrols of each agent."""
    max_steps: int = 2_000
    """Steps of an episode."""
    hold: int = 5
    """Steps between decisions."""
    num_transitions: int = 400_000
    """Transitions that models learn from."""
    training_steps: int = 3_000
    """Steps of training."""
    num_landmarks: int = 4_000
    """Landmarks of the graph."""
    num_jumps: int = 16
    """Jumps of each policy from each landmark."""
    samples: int = 16
    """Samples for each policy."""

    def __post_init__(self):
        one_of("maze", self.maze, [maze for maze in MAZES if maze.startswith("pointmaze")])

    @property
    def base(self) -> mazes.Config:
        """The experiment whose models these are."""
        names = ("maze", "num_transitions", "training_steps", "num_landmarks", "num_jumps", "samples")
        return mazes.Config(**{name: getattr(self, name) for name in names})


PRESETS = {
    "tiny": Config(
        maze="pointmaze-medium",
        episodes=5,
        patrols=1,
        max_steps=12,
        num_transitions=4_096,
        training_steps=20,
        num_landmarks=100,
        num_jumps=4,
        samples=4,
    ),
    "cpu": Config(),
    "paper": Config(episodes=100, num_transitions=1_000_000, training_steps=20_000),
}


@lru_cache(maxsize=1)
def first_agent(config: Config) -> tuple[GGPIAgent, JumpyGraph, OGBenchMaze]:
    """An agent whose reward is still to be given, its graph and its maze."""
    training, world = mazes.training_of(config.base, 0), OGBenchMaze(config.maze)
    graph, ghms = graph_of(training, config.base.sizes), models(training).with_alpha(ALPHA)
    reward = rooms(np.zeros((3, 2)), np.zeros(3), world.radius)
    return (
        GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples=config.samples),
        graph,
        world,
    )


def chooser(config: Config, name: str, places: np.ndarray) -> Choose:
    """An agent that visits rooms."""
    first, graph, world = first_agent(config)
    if name == "guide":
        return shortest_tour(world, places)
    weights = tour_weights(graph.landmarks, graph.solve, places, world.radius) if name == "any order" else {}
    agents: dict[bytes, GGPIAgent] = {}

    def choose(state: np.ndarray, left: np.ndarray, key: Key) -> np.ndarray:
        mine = agents.get(left.tobytes())
        if mine is None:
            wanted = np.arange(len(left)) == left.argmax() if name == "named order" else left
            given = weights.get(tuple(map(bool, left)), wanted)
            mine = agents[left.tobytes()] = first.with_reward(rooms(places, given, world.radius))
        return mine.act(state.astype(np.float32), key=key)

    return choose


def shortest_tour(world: OGBenchMaze, places: np.ndarray) -> Choose:
    """Knows the maze: towards the first room of the shortest tour of those that are left."""
    decide = guide(world, ogbench_policies(), world.safe)

    def choose(state: np.ndarray, left: np.ndarray, key: Key) -> np.ndarray:
        tours = itertools.permutations(np.flatnonzero(left))
        first = min(tours, key=lambda tour: tour_length(world, [state, *places[list(tour)]]))[0]
        return decide(state[None], places[first][None], key)[0]

    return choose


def follow(
    config: Config, choose: Choose, start: np.ndarray, places: np.ndarray, seed: int
) -> tuple[int, np.ndarray]:
    """Steps until the last place is visited (0: never), and the path [T + 1, 2]."""
    world, rng, key = OGBenchMaze(config.maze), np.random.default_rng(seed), jax.random.key(seed)
    left, path, action = np.ones(len(places), bool), [start], np.zeros(2)
    for t in range(config.max_steps):
        if t % config.hold == 0:
            action = choose(path[-1], left, jax.random.fold_in(key, t))
        path.append(world.step(path[-1][None], action[None], rng)[0])
        left = left & (np.linalg.norm(path[-1] - places, axis=1) > world.radius)
        if not left.any():
            return t + 1, np.array(path)
    return 0, np.array(path)


def tour_task(config: Config, number: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A start, three rooms in cells of their own, and the seed of an episode."""
    world, seed = OGBenchMaze(config.maze), REPORTED + 100_000 * config.seed + number
    rng = np.random.default_rng(seed)
    cells = [(int(row), int(column)) for row, column in np.argwhere(world.safe)]
    reached = [cell for cell in cells if reachable(world, cell)]
    chosen = np.array(reached)[rng.permutation(len(reached))[:4]]
    places = world.centre(*chosen.T)
    return places[0], places[1:], seed


def tours(config: Config, name: str) -> Metrics:
    """Episodes of an agent that visits three rooms."""
    steps = []
    for number in range(config.episodes):
        start, places, seed = tour_task(config, number)
        steps.append(follow(config, chooser(config, name, places), start, places, seed)[0])
    return {"steps": np.array(steps)}


def patrols(config: Config, name: str) -> Metrics:
    """Episodes of an agent that visits the first two rooms of a tour in turn: how many visits there were."""
    found = [patrolled(config, name, number)[0] for number in range(config.patrols)]
    return {"visits": found}


def patrolled(config: Config, name: str, number: int) -> tuple[int, np.ndarray]:
    """Visits, and the path."""
    first, graph, world = first_agent(config)
    start, places, seed = tour_task(config, number)
    limits = {"max_steps": config.max_steps, "hold": config.hold}
    return patrol(world, patroller(name, first, graph, world, places[:2]), start, places[:2], seed, **limits)


def detour(config: Config, penalty: float) -> Metrics:
    """Episodes of all tasks with a corridor to avoid: steps, and steps in the corridor."""
    found = [
        one_detour(config, task, penalty, number)
        for number in range(max(1, config.episodes // 5))
        for task in detour_tasks(OGBenchMaze(config.maze))
    ]
    return {"steps": np.array([steps for steps, _, _ in found]), "inside": [inside for _, inside, _ in found]}


def one_detour(config: Config, task: int, penalty: float, number: int) -> tuple[int, int, np.ndarray]:
    """Steps to the goal (0: never), steps in the corridor, and the path."""
    first, _, world = first_agent(config)
    squares, goal = corridor_of(world, task), world.task(task).goal
    mine = first.with_reward(avoiding(goal, world.radius, squares, world.unit / 2, penalty))

    def choose(state: np.ndarray, left: np.ndarray, key: Key) -> np.ndarray:
        return mine.act(state.astype(np.float32), key=key)

    seed = REPORTED + 100_000 * config.seed + 1_000 * task + number
    steps, path = follow(config, choose, world.task(task).start, goal[None], seed)
    inside = (np.abs(path[:, None] - squares).max(axis=2) <= world.unit / 2).any(axis=1)
    return steps, int(inside.sum()), path


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Tours and detours of every agent."""
    jobs: Metrics = {_cell(name): partial(tours, config, name) for name in TOURS}
    jobs |= {_cell(name, "patrol"): partial(patrols, config, name) for name in PATROLS}
    jobs |= {f"corridor/{p:g}": partial(detour, config, p) for p in (0.0, PENALTY)}
    results = cells(jobs | {"picture": partial(picture, config)})
    corridors = {p: results[f"corridor/{p:g}"] for p in (0.0, PENALTY)}
    world = OGBenchMaze(config.maze)
    low, high = world.bounds
    return {
        "maze": config.maze,
        "free": world.free,
        "low": low,
        "high": high,
        "max_steps": config.max_steps,
        "episodes": config.episodes,
        "tours": {name: success(np.array(results[_cell(name)]["steps"])) for name in TOURS},
        "patrols": {
            name: mean_interval(results[_cell(name, "patrol")]["visits"])
            | {"episodes": len(results[_cell(name, "patrol")]["visits"])}
            for name in PATROLS
        },
        "corridors": {
            f"{p:g}": success(np.array(one["steps"]))
            | {"episodes": len(one["steps"]), "inside": mean_interval(one["inside"])}
            for p, one in corridors.items()
        },
        "picture": results["picture"],
    }


def _cell(name: str, errand: str = "tour") -> str:
    return f"{errand}/{name.replace(' ', '-')}"


def picture(config: Config) -> Metrics:
    """A tour, a patrol, and a task with and without the penalty: paths, and V with the penalty."""
    first, graph, world = first_agent(config)
    start, places, seed = tour_task(config, config.episodes)
    steps, path = follow(config, chooser(config, "any order", places), start, places, seed)
    visits, around = patrolled(config, "in turn", config.episodes)
    task = detour_tasks(world)[-1]
    squares, goal = corridor_of(world, task), world.task(task).goal
    mine = first.with_reward(avoiding(goal, world.radius, squares, world.unit / 2, PENALTY))
    paths = {f"{p:g}": one_detour(config, task, p, config.episodes) for p in (0.0, PENALTY)}
    return {
        "tour": {"rooms": places, "path": np.round(path, 3), "steps": steps},
        "patrol": {"rooms": places[:2], "path": np.round(around, 3), "visits": visits},
        "corridor": {
            "target": goal,
            "radius": world.radius,
            **value_map(mine, graph, config.seed),
            "squares": squares,
            "half": world.unit / 2,
            "steps": paths[f"{PENALTY:g}"][0],
            "path": np.round(paths[f"{PENALTY:g}"][2], 3),
            "other": np.round(paths["0"][2], 3),
        },
    }
