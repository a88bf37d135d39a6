"""Tables, figure and film of `ant-visualise`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.ant.calibration import calibration_table
from ggpi.lab.ant.visualise import Config
from ggpi.lab.cells import Metrics
from ggpi.lab.film import titled

Limits = tuple[np.ndarray, float]
"""The middle of a panel, and half its width."""
SLOWER, PAUSE = 2, 16
"""Pictures of each step, and of the end, in a film of 16 pictures a second."""


def table(metrics: Metrics) -> list[Table]:
    """How the models are calibrated, and how the episodes went."""
    shown = Table(title="The same start, the same target", title_justify="left")
    others = f"of {metrics['episodes']} other targets"
    for column in ("agent", "target reached", "steps", "first plan", others):
        shown.add_column(column, no_wrap=column in ("agent", "first plan"))
    for agent in metrics["agents"]:
        steps = str(len(agent["path"]) - 1)
        shown.add_row(
            style.depth_name(agent["depth"]),
            "yes" if agent["reached"] else "no",
            steps,
            agent["plans"][0]["name"],
            str(agent["successes"]),
        )
    for name, row in metrics["baselines"].items():
        shown.add_row(name, "", "", "", f"{row['mean'] * metrics['episodes']:.0f}")
    return [calibration_table(metrics["ratios"]), shown]


def plot(metrics: Metrics) -> Figure:
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
        row[0].set_ylabel(style.depth_name(agent["depth"]), fontsize=9)
    kinds = {
        "after each policy alone": style.GREY,
        "first segment": style.CYAN,
        "second segment": style.PURPLE,
    }
    dots = [axes[0, 0].scatter([], [], s=12, color=colour, label=words) for words, colour in kinds.items()]
    canvas.legend(handles=dots, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    return canvas


def _limits(agents: list[Metrics]) -> Limits:
    """The middle and half the width of what is shown."""
    places = np.concatenate([np.array(agent["path"])[:60] for agent in agents] + [[agents[0]["target"]]])
    low, high = places.min(axis=0), places.max(axis=0)
    return (low + high) / 2, float((high - low).max() / 2 + 1.2)


def _frame(ax: Axes, agent: Metrics, radius: float, limits: Limits) -> None:
    ax.add_patch(Circle(tuple(agent["target"]), radius, color=style.GREEN, alpha=0.5, linewidth=0))
    (x, y), half = limits
    ax.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
    ax.tick_params(labelsize=6)


def _draw_samples(
    ax: Axes, agent: Metrics, plan: Metrics, moment: int, radius: float, limits: Limits
) -> None:
    for places in plan["alone"]:
        ax.scatter(*np.array(places).T, s=3, color=style.GREY, linewidth=0)
    for places, colour in zip(plan["best"], (style.CYAN, style.PURPLE), strict=False):
        ax.scatter(*np.array(places).T, s=5, color=colour, linewidth=0)
    path = np.array(agent["path"])
    ax.plot(*path[: moment + 1].T, color=style.INK, linewidth=0.8)
    ax.plot(*path[moment], "o", color=style.INK, markersize=4)
    _frame(ax, agent, radius, limits)
    ax.set_title(f"step {moment}: {plan['name']}", fontsize=7, color=style.INK)


def _draw_path(ax: Axes, agent: Metrics, radius: float, limits: Limits) -> None:
    path = np.array(agent["path"])
    lines = LineCollection(np.stack([path[:-1], path[1:]], axis=1).tolist(), cmap="coolwarm", linewidth=1.5)
    lines.set_array(np.arange(len(path) - 1))
    ax.add_collection(lines)
    ax.plot(*path[0], "o", color=style.INK, markersize=4)
    _frame(ax, agent, radius, limits)
    ending = "reached" if agent["reached"] else "not reached"
    ax.set_title(f"{ending} after {len(path) - 1} steps", fontsize=7, color=style.INK)


def film(config: Config, metrics: Metrics) -> list[np.ndarray]:
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
            words = f"{style.depth_name(agent['depth'])}, step {t}{': reached' if is_there else ''}"
            pictures += [titled(picture, words)] * SLOWER
        sides.append(pictures)
    camera.close()
    longest = max(map(len, sides)) + PAUSE
    waiting = [side + [side[-1]] * (longest - len(side)) for side in sides]
    return [np.concatenate(pair, axis=1) for pair in zip(*waiting, strict=True)]
