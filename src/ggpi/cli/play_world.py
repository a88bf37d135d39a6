"""`ggpi play NAME`: worlds of the studio that have no directory of `ggpi fit`: four rooms, OGBench's point mazes."""

from pathlib import Path

import jax
import numpy as np
from rich.table import Table

from ggpi.agent.agent import GGPIAgent
from ggpi.cli.play_episodes import Episode, PlayConfig, studio_settings, table
from ggpi.data import StateSpec
from ggpi.diagnosis.report import names as distinct
from ggpi.envs.ogbench_maze import MAZES
from ggpi.lab.fit_directory import shipped
from ggpi.progress import progress
from ggpi.rewards import Reward, arrival
from ggpi.rewards.text import read_reward
from ggpi.studio.decisions import decider
from ggpi.studio.worlds import World
from ggpi.types import Key

NAMES = ("four-rooms", *(name for name in MAZES if name.startswith("pointmaze")))


def is_world(models: Path) -> bool:
    """Whether a name is that of a world, not of a directory."""
    return str(models) in NAMES and not shipped(models).exists()


def play_world(name: str, config: PlayConfig) -> Table:
    """Episodes of an agent in a world, as a table; the first is that of the page with the same seed."""
    for field in ("episodes", "max_steps"):
        if getattr(config, field) < 1:
            raise ValueError(f"{field} is at least 1, got {getattr(config, field)}")
    if config.env:
        raise ValueError(f"{name} has its own environment: leave out --env")
    settings, world = studio_settings(config), _opened(name)
    said = read_reward(config.reward, StateSpec(world.names))
    reward = _reward(world, said)
    agent = decider(world, settings, reward).agent
    start = None if config.start is None else _state(world, config.start)
    with progress(config.episodes, "playing") as advance:
        episodes = []
        for i in range(config.episodes):
            key = jax.random.fold_in(jax.random.key(config.seed), i)
            episodes.append(_episode(world, agent, reward, start, config.seed + i, config.max_steps, key))
            advance(i + 1, "")
    return table(episodes, config, said, agent.ghms.gamma, distinct(agent.ghms.policies))


def _opened(name: str) -> World:
    from ggpi.studio.catalogue import four_rooms, ogbench_maze

    return four_rooms() if name == "four-rooms" else ogbench_maze(name)()


def _reward(world: World, said: Reward) -> Reward:
    """The reward of entering states; in a finite MDP a table of it."""
    values = said.values
    if said.form != "arrival" or not callable(values):
        raise ValueError(
            f"in {world.name} a reward is a target, features or a formula, got one of {said.form}"
        )
    if world.places is None:
        return said
    return arrival(np.asarray(jax.vmap(values)(world.places.astype(np.float32)), float))


def _state(world: World, start: tuple[float, ...]) -> np.ndarray:
    """The state of --start: a place."""
    if len(start) != len(world.names):
        raise ValueError(f"--start is {', '.join(world.names)}: {len(world.names)} numbers, got {len(start)}")
    found = None if world.at is None else world.at(start[0], start[1])
    if found is None:
        raise ValueError(f"there is a wall at {start[0]:g}, {start[1]:g}")
    return found


def _episode(
    world: World,
    agent: GGPIAgent,
    reward: Reward,
    start: np.ndarray | None,
    seed: int,
    max_steps: int,
    key: Key,
) -> Episode:
    """One episode; the same seed and start, the same episode."""
    body = world.body(seed)
    if start is not None:
        body.state = start
    rewards, plans = [], []
    for t in range(max_steps):
        plans.append(agent.plan(body.state, key=jax.random.fold_in(key, t)))
        body.step(np.asarray(plans[-1].action))
        values = reward.values
        rewards.append(float(values(body.state) if callable(values) else values[int(body.state)]))
    heads = np.array([plan.gsps[int(plan.best)].head for plan in plans])
    return Episode(np.array(rewards), heads, "max-steps", any(np.any(plan.value) for plan in plans))
