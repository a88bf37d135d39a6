"""Discrete actions with learned models: which first actions to score, and from what data.

CartPole, Acrobot and LunarLander, each with a few scripted policies that do one thing, and with rewards on arrival that
none of them was made for. Models are learned once per environment and serve all its rewards. Agents differ in how they
choose the first action:

    head    the head of the best switching policy acts
    all     every action is scored by models of what follows it after a geometric time, μ(·|x, a)
    step    every action is scored by a model of the next state, and by the switching policies' values there

An agent that scores actions reaches states that no base policy visits, where it depends on the models' extrapolation.
So data is collected twice: by the base policies alone, and with random actions in some of their turns. In CartPole, GPI
also plays with simulated futures instead of models: differences that remain are not due to the models.
"""

from dataclasses import dataclass
from functools import partial

import gymnasium
import jax

from ggpi.agent.agent import GGPIAgent
from ggpi.diagnosis.comparison import compare
from ggpi.envs.making import make
from ggpi.ghm.base import GHMs
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.discrete.environments import WORLDS, World
from ggpi.lab.discrete.oracle import Oracle
from ggpi.learning.fitting import fit
from ggpi.rewards import Reward
from ggpi.rollout.collection import collect

MODES = ("head", "all", "step")


@dataclass(frozen=True)
class Config:
    worlds: tuple[str, ...] = tuple(WORLDS)
    """Where: cart-pole, acrobot, lunar-lander (which needs the extra box2d)."""
    explore: tuple[float, ...] = (0.0, 0.25)
    """Shares of turns with random actions while data is collected."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Depths of the agents; those that know no ends have the second."""
    gamma: float = 0.95
    """Discount γ."""
    alpha: float = 0.1
    """Probability of a switch per step."""
    transitions: int = 400_000
    """Transitions to learn from."""
    steps: int = 50_000
    """Training steps."""
    num_samples: int = 100
    """Samples for each switching policy and first action."""
    episodes: int = 100
    """Episodes of each agent and reward."""
    max_steps: int = 200
    """Steps of an episode, unless it ends before."""
    seed: int = 0
    """Seed of data, training and episodes."""

    def __post_init__(self):
        unknown = [name for name in self.worlds if name not in WORLDS]
        if unknown or not self.worlds:
            raise ValueError(f"worlds are among {', '.join(WORLDS)}, got {self.worlds}")
        if min(self.depths, default=0) < 1:
            raise ValueError(f"depths are at least 1, got {self.depths}")


PRESETS = {
    "tiny": Config(
        worlds=("cart-pole",),
        explore=(0.25,),
        depths=(1,),
        transitions=2_000,
        steps=250,
        num_samples=8,
        episodes=2,
        max_steps=5,
    ),
    "cpu": Config(transitions=100_000, steps=3_000, num_samples=32, episodes=10),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Learns models of every world from both kinds of data, and plays all rewards."""
    for name in config.worlds:
        make(WORLDS[name].env).close()  # report a missing package before hours of work
    tasks = {
        f"{name}/explore-{share:g}": partial(play_world, config, name, share)
        for name in config.worlds
        for share in config.explore
    }
    return {"episodes": config.episodes, "max_steps": config.max_steps, "panels": list(cells(tasks).values())}


def play_world(config: Config, name: str, explore: float) -> Metrics:
    """All rewards of one world, with models of one kind of data."""
    world = WORLDS[name]
    policies = world.base_policies()
    data = collect(
        world.env, policies, config.transitions, switch_every=40, explore=explore, seed=config.seed
    )
    ghms = fit(
        policies,
        data,
        gamma=config.gamma,
        alpha=config.alpha,
        steps=config.steps,
        key=jax.random.key(config.seed),
    )
    make = partial(gymnasium.make, world.env, max_episode_steps=config.max_steps)
    scores = {}
    for task, reward in world.tasks.items():
        agents = make_agents(config, world, ghms, reward)
        found = compare(
            make,
            ghms,
            reward,
            agents=agents,
            episodes=config.episodes,
            max_steps=config.max_steps,
            seed=config.seed,
        )
        scores[task] = found.as_json()["scores"]
    return {"world": name, "explore": explore, "tasks": scores}


def make_agents(config: Config, world: World, ghms: GHMs, reward: Reward) -> Metrics:
    """An agent for each mode and depth, one for each mode that knows no ends, and GPI with simulated futures."""
    settings: Metrics = {"num_samples": config.num_samples}
    agents: Metrics = {}
    for mode in MODES:
        for depth in config.depths:
            given = settings | {"depth": depth, "first_actions": mode, "terminal": world.terminal}
            agents[f"{mode}, depth {depth}"] = GGPIAgent(ghms, reward, **given)
        if world.terminal is not None:
            given = settings | {"depth": config.depths[:2][-1], "first_actions": mode}
            agents[f"{mode}, no terminal"] = GGPIAgent(ghms, reward, **given)
    if world.step is not None:
        for mode in ("head", "all"):
            agents[f"{mode}, true futures"] = Oracle(world, reward, config.gamma, mode)
    return agents
