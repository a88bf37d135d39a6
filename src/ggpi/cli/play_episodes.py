"""`ggpi play MODELS --reward …`: an agent acts in the environment of its models, for a new reward."""

import functools
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import jax
import numpy as np
from rich.table import Table

from ggpi.agent.agent import GGPIAgent
from ggpi.agent.warnings import NoRewardWarning
from ggpi.cli.comparison_report import write_comparison
from ggpi.cli.play_film import Add, filming
from ggpi.diagnosis.comparison import compare
from ggpi.diagnosis.report import names as distinct
from ggpi.ghm.base import GHMs
from ggpi.lab.film import check_film_name
from ggpi.lab.fit_directory import World, read_models, read_world, shipped, trusted
from ggpi.progress import progress
from ggpi.rewards import Reward, Target
from ggpi.rewards.text import read_python, read_reward
from ggpi.rollout.episodes import Singles, follow

if TYPE_CHECKING:
    from ggpi.studio.decisions import Settings

UNSEEN = (
    "the value of all plans was 0 in every step: no sampled future reached the reward, so policies were chosen at "
    "random. Try more samples (--samples, now {}), more depth (--depth, now {}), or a reward that is met more often, "
    "such as a target with a larger radius"
)


@dataclass(frozen=True)
class PlayConfig:
    """How an agent plays."""

    reward: str
    """In words, see `ggpi.rewards.text`."""
    depth: int | float = 2
    """inf is the closed loop."""
    samples: int = 100
    episodes: int = 5
    max_steps: int = 1000
    seed: int = 0
    terminal: str | None = None
    """FILE.py:FUNCTION that tells of a state whether the world ends there."""
    env: str | None = None
    """The environment with its module, such as boat:Boat-v0, if that has to be imported."""
    first_actions: str | None = None
    """head, all, step or a number; see `ggpi.GGPIAgent`."""
    planner: str | None = None
    """exhaustive, halving or beam."""
    gamma: float | None = None
    alpha: float | None = None
    start: tuple[float, ...] | None = None
    """The state in which every episode starts."""

    @property
    def is_of_studio(self) -> bool:
        """Whether the agent is one that only the studio makes."""
        named = (self.planner, self.gamma, self.alpha)
        return self.depth == float("inf") or any(value is not None for value in named)


@dataclass(frozen=True)
class Episode:
    """What happened in one episode."""

    rewards: np.ndarray
    """The reward of each step."""
    policies: np.ndarray
    """The policy that was followed in each step: the head of the best switching policy."""
    end: str
    is_sighted: bool = True
    """Whether any plan had a value other than 0."""


def play(models: Path, config: PlayConfig, video: Path | None = None) -> Table:
    """Episodes of an agent, as a table; filmed if asked."""
    if video is not None:
        check_film_name(video)
    world, ghms, reward, terminal = _prepared(models, config)
    if config.is_of_studio:
        agent = as_in_studio(models, reward, config)
    else:
        agent = _agent(ghms, reward, config, terminal, int(config.depth))
    with progress(config.episodes, "playing") as advance, filming(world, video) as (env, add):
        episodes = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRewardWarning)  # of one state; below it is of all
            for i in range(config.episodes):
                report = functools.partial(advance, i)
                episodes.append(run_episode(agent, reward, env, world, config, i, add, report))
        advance(config.episodes, "")
    if not any(episode.is_sighted for episode in episodes):
        warnings.warn(UNSEEN.format(config.samples, config.depth), NoRewardWarning, stacklevel=2)
    return table(episodes, config, reward, ghms.gamma, distinct(ghms.policies))


def compare_agents(models: Path, config: PlayConfig, out: Path) -> Table:
    """Base policies, random switching and agents up to the given depth on the same episodes, as a table."""
    if config.start is not None:
        raise ValueError("--compare takes no --start: its episodes start where the environment resets")
    if config.is_of_studio:
        raise ValueError("--compare takes neither --depth inf nor --planner, --gamma and --alpha")
    world, ghms, reward, terminal = _prepared(models, config)
    depths = range(1, int(config.depth) + 1)
    agents = {
        f"GGPI depth {m}" if m > 1 else "GPI": _agent(ghms, reward, config, terminal, m) for m in depths
    }
    found = compare(
        world.make,
        ghms,
        reward,
        agents=agents,
        episodes=config.episodes,
        max_steps=config.max_steps,
        keys=world.keys or None,
        seed=config.seed,
    )
    return write_comparison(found, config.reward, out)


def _prepared(models: Path, config: PlayConfig) -> tuple[World, GHMs, Reward, Callable[..., Any] | None]:
    """Everything that play needs, after everything that can be checked before the first step."""
    for name in ("episodes", "max_steps"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name} is at least 1, got {getattr(config, name)}")
    models = shipped(models)
    world, ghms = trusted(read_world(models), config.env, models), read_models(models)
    reward = read_reward(config.reward, world.spec)
    terminal = read_python(config.terminal) if config.terminal else None
    if terminal is not None and not callable(terminal):
        raise ValueError(f"--terminal names a function of the state, {config.terminal} is {terminal!r}")
    return world, ghms, reward, terminal


def _agent(
    ghms: GHMs, reward: Reward, config: PlayConfig, terminal: Callable[..., Any] | None, depth: int
) -> GGPIAgent:
    given = config.first_actions
    first_actions: Any = int(given) if given is not None and given.isdecimal() else given
    return GGPIAgent(
        ghms,
        reward,
        depth=depth,
        num_samples=config.samples,
        first_actions=first_actions,
        terminal=terminal,
    )


def as_in_studio(models: Path, reward: Reward, config: PlayConfig) -> GGPIAgent:
    """The agent that the page has for the same settings."""
    from ggpi.studio.decisions import decider
    from ggpi.studio.fitted import fitted_world

    return decider(fitted_world(models, env=config.env), studio_settings(config), reward).agent


def studio_settings(config: PlayConfig) -> "Settings":
    """How the page would say it; raises for what it does not have."""
    from ggpi.studio.decisions import PLANNERS, Settings

    if config.terminal or config.first_actions:
        raise ValueError(
            "--depth inf, --planner, --gamma and --alpha take neither --terminal nor --first-actions"
        )
    planner = config.planner or PLANNERS[0]
    if planner not in PLANNERS:
        raise ValueError(f"--planner is one of {', '.join(PLANNERS)}, got {planner!r}")
    depth = 0 if config.depth == float("inf") else int(config.depth)
    if depth < 1 and config.depth != float("inf"):
        raise ValueError(f"depth is at least 1, got {depth}")
    return Settings(depth, planner, config.samples, config.gamma, config.alpha)


def run_episode(
    agent: GGPIAgent,
    reward: Reward,
    env: gymnasium.Env,
    world: World,
    config: PlayConfig,
    i: int,
    add: Add,
    report: Callable[[str], None],
) -> Episode:
    """One episode until the environment ends it; the same seed, the same episode."""
    key, plans = jax.random.fold_in(jax.random.key(config.seed), i), []
    copies = _started(env, world, config, i)
    add(env)

    def choose(t: int, states: np.ndarray) -> np.ndarray:
        plans.append(agent.plan(states[0], key=jax.random.fold_in(key, t)))
        return plans[-1].action[None]

    rewards, end = [], "max-steps"
    for step in follow(copies, choose, config.max_steps):
        rewards.append(_reward(reward, step.state[0], step.action[0], step.next_state[0]))
        add(env)
        report(f"step {len(rewards)}")
        if step.ended[0]:
            end = "terminated" if step.is_done[0] else "time"
    heads = np.array([plan.gsps[int(plan.best)].head for plan in plans])
    return Episode(np.array(rewards), heads, end, any(np.any(plan.value) for plan in plans))


def _started(env: gymnasium.Env, world: World, config: PlayConfig, i: int) -> Singles:
    """The environment at the start of an episode."""
    if config.start is None:
        return Singles.reset([env], world.reader(env), [config.seed + i])
    wanted = np.asarray(config.start, np.float32)
    if len(wanted) != len(world.names):
        raise ValueError(
            f"--start is {', '.join(world.names)}: {len(world.names)} numbers, got {len(wanted)}"
        )
    copies = Singles.reset([env], world.reader(env), [config.seed + i], {"state": wanted})
    if not np.allclose(copies.state[0], wanted, atol=1e-4):
        raise ValueError(f"{world.env} cannot be put in the state of --start; it is at {copies.state[0]}")
    return copies


def _reward(reward: Reward, state: np.ndarray, action: np.ndarray, following: np.ndarray) -> float:
    given = {"state": (state,), "state_action": (state, action), "arrival": (following,)}[reward.form]
    assert callable(reward.values)
    return float(reward.values(*given))


def table(
    episodes: list[Episode], config: PlayConfig, reward: Reward, gamma: float, names: list[str]
) -> Table:
    """One row per episode, and their mean; for a target also when it was reached."""
    shown = Table(title=f"{config.reward}, depth {config.depth}", title_justify="left")
    columns = ["episode", "steps", "end", "sum of rewards", f"return, γ = {gamma:g}"]
    rows = [[str(i), str(len(one.rewards)), one.end, *_sums([one], gamma)] for i, one in enumerate(episodes)]
    steps = np.mean([len(episode.rewards) for episode in episodes])
    mean = ["mean", f"{steps:.1f}", "", *_sums(episodes, gamma)]
    if isinstance(reward.values, Target):
        columns.append("reached in step")
        reached = [np.flatnonzero(episode.rewards > 0) for episode in episodes]
        for row, when in zip(rows, reached, strict=True):
            row.append(str(when[0] + 1) if len(when) else "never")
        mean.append(f"{np.mean([len(when) > 0 for when in reached]):.0%} reached")
    for column in columns:
        shown.add_column(column, justify="right")
    shown.add_column("policies")
    for row, episode in zip(rows, episodes, strict=True):
        shown.add_row(*row, _shares(episode, names))
    if len(episodes) > 1:
        shown.add_section()
        shown.add_row(*mean, "")
    return shown


def _sums(episodes: list[Episode], gamma: float) -> list[str]:
    """Means of Σ R and of Σ γᵗ R over episodes."""
    plain = np.mean([episode.rewards.sum() for episode in episodes])
    discounted = np.mean([episode.rewards @ gamma ** np.arange(len(episode.rewards)) for episode in episodes])
    return [f"{plain:.4g}", f"{discounted:.4g}"]


def _shares(episode: Episode, names: list[str]) -> str:
    """Which policies were followed how often, and how often the agent changed its mind."""
    counts = Counter(episode.policies.tolist()).most_common()
    shares = ", ".join(f"{names[k]} {count / len(episode.policies):.0%}" for k, count in counts)
    changes = int((np.diff(episode.policies) != 0).sum())
    return f"{shares}; {changes} changes"
