"""What the agents imagine and what they do: GPI and depth-2 GGPI from the same start.

Left, the models' samples at the first step: for every GSP of depth 1, the states after a geometric time; at depth
2, both segments of the best plan. Then samples along the episode, and the whole trajectory, blue to red with time.
The green disc is the target with the boundary of its reward. The film shows both ants side by side.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from rich.table import Table

from ggpi.agent.agent import GGPIAgent
from ggpi.envs.ant import SparseAnt
from ggpi.lab import style
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import plain
from ggpi.lab.ant.calibration import announce, calibrate, calibration_table
from ggpi.lab.ant.models import FITS, FitConfig, models
from ggpi.lab.contract import Cells, compute
from ggpi.lab.film import titled
from ggpi.rewards import target as target_reward

DEPTHS = (1, 2)
SHOWN = 60
"""Samples of each kind that are drawn."""


SLOWER, PAUSE = 2, 16
"""Pictures of each step, and of the end, in a film of 16 pictures a second."""


@dataclass(frozen=True)
class Config:
    seed: int = 4
    """Seed of the episode."""
    preset: str = "paper"
    """How the models are trained: tiny, cpu or paper."""
    samples: int = 100
    """Samples for each GSP of depth 2."""
    moments: int = 3
    """Later steps at which samples are shown."""
    steps: int = ant.MAX_STEPS
    """Longest episode that is drawn."""
    episodes: int = 10
    """Episodes of each agent for the table."""
    pairs: int = 32
    """Pairs (x, a) at which the models are held against simulation, and futures of each."""


PRESETS = {
    "tiny": Config(preset="cpu", samples=4, moments=1, steps=6, episodes=1, pairs=4),
    "cpu": Config(preset="cpu"),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """One episode of each agent, with the samples of its plans.

    Paper: Fig 6, Fig 15, Fig 16
    """
    fit = replace(FITS[config.preset], seed=0)
    ratios = announce(cells({"models": partial(calibrate, fit, config.pairs, config.pairs)})["models"])
    given = config.episodes, ant.REPORTED + 600_000 + config.seed
    tasks: dict[str, Any] = {f"depth-{depth}": partial(episode, config, fit, depth) for depth in DEPTHS}
    tasks |= {f"episodes/depth-{depth}": partial(handful, config, fit, depth, given) for depth in DEPTHS}
    results = cells(tasks | {"episodes/plain": partial(plain, *given)})
    return {
        "ratios": ratios,
        "baselines": results["episodes/plain"],
        "radius": ant.RADIUS,
        "episodes": config.episodes,
        "agents": [{"depth": d, **results[f"depth-{d}"], **results[f"episodes/depth-{d}"]} for d in DEPTHS],
    }


def handful(config: Config, fit: FitConfig, depth: int, given: tuple[int, int]) -> dict[str, Any]:
    """How many of a handful of targets are reached.

    Paper: Table 1
    """
    decide = ant.planner(models(fit), depth, ant.budget(config.samples, depth))
    return {"successes": int(ant.episodes(decide, *given).reached.sum())}


def episode(config: Config, fit: FitConfig, depth: int) -> dict[str, Any]:
    """An episode until the target is reached, and what was imagined on the way."""
    env = SparseAnt(radius=ant.RADIUS)
    state, info = env.reset(seed=ant.REPORTED + 500_000 + config.seed)
    ghms = models(fit)
    reward = target_reward(info["target"], ant.RADIUS)
    agent = GGPIAgent(ghms, reward, depth=depth, num_samples=ant.budget(config.samples, depth))
    path, plans, positions = [state[:2]], [], []
    for key in jax.random.split(jax.random.key(config.seed), config.steps):
        plan = agent.plan(state, key=key)
        plans.append(_shown(plan, ghms.names, len(plans) == 0))
        positions.append(np.concatenate([env.data.qpos, env.data.qvel]))
        state, _, terminated, truncated, _ = env.step(plan.action)
        path.append(state[:2])
        if terminated or truncated:
            break
    moments = np.unique(np.linspace(0, len(plans) - 1, config.moments + 1).astype(int))
    return {
        "target": info["target"],
        "path": np.round(np.array(path, float), 3),
        "reached": bool(np.linalg.norm(path[-1] - info["target"]) <= ant.RADIUS),
        "moments": moments,
        "plans": [plans[i] for i in moments],
        "heads": [plan["head"] for plan in plans],
        "positions": np.round(np.array(positions), 4),
    }


def _shown(plan: Any, names: list[str], whole: bool) -> dict[str, Any]:
    """The best plan's samples; at the first step also those of every policy alone."""
    best = int(plan.best)
    alone = [i for i, gsp in enumerate(plan.gsps) if len(gsp) == 1]
    every = [_places(plan.samples(i)[-1]) for i in alone] if whole else []
    return {
        "name": plan.gsps[best].name(names),
        "head": names[plan.gsps[best].head],
        "best": [_places(part) for part in plan.samples(best)],
        "alone": every,
        "value": round(float(plan.value[best]), 4),
    }


def _places(states: np.ndarray) -> Any:
    return np.round(states[:SHOWN, :2].astype(float), 2)


def table(metrics: dict[str, Any]) -> list[Table]:
    """How the models are calibrated, and how the episodes went."""
    shown = Table(title="The same start, the same target", title_justify="left")
    others = f"of {metrics['episodes']} other targets"
    for column in ("agent", "target reached", "steps", "first plan", others):
        shown.add_column(column, no_wrap=column in ("agent", "first plan"))
    for agent in metrics["agents"]:
        steps = str(len(agent["path"]) - 1)
        shown.add_row(
            _words(agent),
            "yes" if agent["reached"] else "no",
            steps,
            agent["plans"][0]["name"],
            str(agent["successes"]),
        )
    for name, row in metrics["baselines"].items():
        shown.add_row(name, "", "", "", f"{row['mean'] * metrics['episodes']:.0f}")
    return [calibration_table(metrics["ratios"]), shown]


def plot(metrics: dict[str, Any]) -> Figure:
    """For each agent: samples at the first step, along the episode, and the trajectory."""
    columns = 1 + max(len(agent["plans"]) for agent in metrics["agents"])
    canvas, axes = style.figure(len(metrics["agents"]), columns, size=(2.6, 2.7))
    for agent, row in zip(metrics["agents"], axes, strict=True):
        limits = _limits(metrics["agents"])
        for ax, plan, moment in zip(row, agent["plans"], agent["moments"], strict=False):
            _draw_samples(ax, agent, plan, moment, metrics["radius"], limits)
        for ax in row[len(agent["plans"]) : -1]:
            ax.set_axis_off()
        _draw_path(row[-1], agent, metrics["radius"], limits)
        row[0].set_ylabel(_words(agent), fontsize=9)
    kinds = {
        "after each policy alone": style.GREY,
        "first segment": style.CYAN,
        "second segment": style.PURPLE,
    }
    dots = [axes[0, 0].scatter([], [], s=12, color=colour, label=words) for words, colour in kinds.items()]
    canvas.legend(handles=dots, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    return canvas


def _words(agent: dict[str, Any]) -> str:
    return f"depth {agent['depth']}" + " (GPI)" * (agent["depth"] == 1)


def _limits(agents: list[dict[str, Any]]) -> tuple[np.ndarray, float]:
    """The middle and half the width of what is shown."""
    places = np.concatenate([np.array(agent["path"])[:60] for agent in agents] + [[agents[0]["target"]]])
    low, high = places.min(axis=0), places.max(axis=0)
    return (low + high) / 2, float((high - low).max() / 2 + 1.2)


def _frame(ax: Axes, agent: dict[str, Any], radius: float, limits: tuple[np.ndarray, float]) -> None:
    ax.add_patch(Circle(tuple(agent["target"]), radius, color=style.GREEN, alpha=0.5, linewidth=0))
    (x, y), half = limits
    ax.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
    ax.tick_params(labelsize=6)


def _draw_samples(ax: Axes, agent: dict[str, Any], plan: dict[str, Any], moment: int, radius, limits) -> None:
    for places in plan["alone"]:
        ax.scatter(*np.array(places).T, s=3, color=style.GREY, linewidth=0)
    for places, colour in zip(plan["best"], (style.CYAN, style.PURPLE), strict=False):
        ax.scatter(*np.array(places).T, s=5, color=colour, linewidth=0)
    path = np.array(agent["path"])
    ax.plot(*path[: moment + 1].T, color=style.INK, linewidth=0.8)
    ax.plot(*path[moment], "o", color=style.INK, markersize=4)
    _frame(ax, agent, radius, limits)
    ax.set_title(f"step {moment}: {plan['name']}", fontsize=7, color=style.INK)


def _draw_path(ax: Axes, agent: dict[str, Any], radius: float, limits) -> None:
    path = np.array(agent["path"])
    lines = LineCollection(np.stack([path[:-1], path[1:]], axis=1).tolist(), cmap="coolwarm", linewidth=1.5)
    lines.set_array(np.arange(len(path) - 1))
    ax.add_collection(lines)
    ax.plot(*path[0], "o", color=style.INK, markersize=4)
    _frame(ax, agent, radius, limits)
    ending = "reached" if agent["reached"] else "not reached"
    ax.set_title(f"{ending} after {len(path) - 1} steps", fontsize=7, color=style.INK)


def film(config: Config, metrics: dict[str, Any]) -> list[np.ndarray]:
    """Both agents side by side, with their steps counted; who is done waits, and the end stays for a second.

    Paper: Fig 15
    """
    import mujoco

    from ggpi.envs.ant import physics
    from ggpi.envs.ant.render import Camera

    camera = Camera(width=360, height=320)
    sides = []
    for agent in metrics["agents"]:
        data, pictures = mujoco.MjData(physics.model()), []  # pyright: ignore[reportAttributeAccessIssue]
        for t, state in enumerate(agent["positions"]):
            data.qpos[:], data.qvel[:] = state[:15], state[15:]
            picture = camera.picture(data, np.array(agent["target"]), metrics["radius"])
            is_there = agent["reached"] and t == len(agent["positions"]) - 1
            words = f"{_words(agent)}, step {t}{': reached' if is_there else ''}"
            pictures += [titled(picture, words)] * SLOWER
        sides.append(pictures)
    camera.close()
    longest = max(map(len, sides)) + PAUSE
    waiting = [side + [side[-1]] * (longest - len(side)) for side in sides]
    return [np.concatenate(pair, axis=1) for pair in zip(*waiting, strict=True)]
