"""Tables and figure of `ogbench-mazes`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.value_maps import draw_maze, draw_values
from ggpi.lab.ogbench.episodes import share_words, steps_words
from ggpi.lab.ogbench.published import JUMPY, RERUN, means, quoted


def table(metrics: Metrics) -> list[Table]:
    """Success by task; what others published; seconds of phases; models and graph; in ant mazes, walkers."""
    published = [_published_table(metrics)]
    if metrics["maze"] in JUMPY:
        published.append(jumpy_table(metrics["maze"]))
    walkers = [_walkers_table(metrics)] if "walkers" in metrics else []
    jumps = [_jumps_table(metrics)] if "jumps" in metrics else []
    return [
        _success_table(metrics),
        *published,
        _phases_table(metrics),
        _graph_table(metrics),
        *jumps,
        *walkers,
    ]


def _success_table(metrics: Metrics) -> Table:
    shown = Table(
        title=f"{metrics['maze']}: goals reached, %, by OGBench's tasks",
        caption=f"exact 95% intervals; for each task {metrics['num_models']} seeds of models × {metrics['episodes']} "
        f"episodes of the closed loop, {metrics['few_episodes']} of the others; steps: mean of episodes that reached "
        "the goal, of at most 1,000, with a 95% bootstrap interval over them; ms: of a decision, one every "
        f"{metrics['hold']} steps",
    )
    shown.add_column("agent")
    for column in (*(f"task {task}" for task in metrics["tasks"]), "all", "steps", "ms"):
        shown.add_column(column, justify="right")
    for name, row in metrics["success"].items():
        tasks = (f"{100 * row[str(task)]['mean']:.0f}" for task in metrics["tasks"])
        every = row["all"]
        numbers = share_words(every), steps_words(every["steps"]), f"{metrics['milliseconds'][name]:.1f}"
        shown.add_row(name, *tasks, *numbers)
    return shown


def _published_table(metrics: Metrics) -> Table:
    source = "Park et al., OGBench, arXiv 2410.20092, as a later comparison quotes them; ± over 8 seeds"
    if metrics["maze"] in RERUN:
        source = "means over 3 seeds of a public rerun of OGBench's methods, ECE 567 Project 3"
    shown = Table(
        title=f"{metrics['maze']}: published success, %, of OGBench's methods",
        caption="not the same contest: they learn goal-conditioned policies from OGBench's dataset of 1,000,000 "
        f"transitions; here base policies know directions, and models learn from {metrics['transitions']:,} "
        f"transitions of our own from random places. {source}",
    )
    for method in quoted(metrics["maze"]):
        shown.add_column(method, justify="right")
    shown.add_row(*quoted(metrics["maze"]).values())
    return shown


def jumpy_table(maze: str) -> Table:
    """What is reported of planning with jumpy world models."""
    shown = Table(
        title=f"{maze}: reported success, %, of jumpy world models",
        caption="second-hand, from notes about the paper, and another contest: base policies are goal-conditioned, "
        "from OGBench's dataset. Farebrother et al., arXiv 2602.19634",
    )
    shown.add_column("base policy")
    for column in ("alone", "with planning"):
        shown.add_column(column, justify="right")
    for policy, (alone, planned) in JUMPY[maze].items():
        shown.add_row(policy, f"{alone}", f"{planned}")
    return shown


def _graph_table(metrics: Metrics) -> Table:
    shown = Table(
        title=f"{metrics['maze']}: models and graph, before any episode",
        caption="a goal: seconds to solve the graph for it; in walls, left out: jumps that do, and that end too far "
        "from every landmark",
    )
    for column in ("seed of models", "a goal", "in walls, %", "left out, %"):
        shown.add_column(column, justify="right")
    for seed, row in enumerate(metrics["graphs"]):
        shares = (f"{100 * row[name]:.1f}" for name in ("in_walls", "left_out"))
        shown.add_row(str(seed), f"{row['seconds']['goal']:.2f}", *shares)
    return shown


def _phases_table(metrics: Metrics) -> Table:
    """Seconds of each phase."""
    names = list(metrics["seconds"][0])
    about = "walkers: about, they come with the package; " if "walkers" in names else ""
    shown = Table(
        title=f"{metrics['maze']}: from nothing to a result, seconds of each phase",
        caption=f"{about}training: when it was done; episodes: {len(metrics['tasks'])} tasks × {metrics['episodes']} "
        "of the closed loop, one after another, solving for their goals included",
    )
    for column in ("seed of models", *names):
        shown.add_column(column, justify="right")
    for seed, row in enumerate(metrics["seconds"]):
        shown.add_row(str(seed), *("-" if row[name] is None else f"{row[name]:.0f}" for name in names))
    return shown


def _jumps_table(metrics: Metrics) -> Table:
    """Jumps of models and simulated ones, for each policy and in the mean."""
    shown = Table(
        title=f"{metrics['maze']}: jumps of the models compared with simulation, before any episode",
        caption="from the same landmarks and first actions, of the first seed of models; energy: distance of the two "
        "distributions of places, floor: of two simulations; apart: mean distance of two simulated jumps; in the "
        "maze's units, cells are 4 wide; in walls: of the models' jumps, before records correct them",
    )
    shown.add_column("policy")
    for column in ("energy", "floor", "apart", "in walls, %"):
        shown.add_column(column, justify="right")
    names = ("energy", "floor", "apart", "in_walls")
    mean = {name: float(np.mean([row[name] for row in metrics["jumps"]])) for name in names}
    for policy, row in (*((row["policy"], row) for row in metrics["jumps"]), ("mean", mean)):
        distances = f"{row['energy']:.4f}", f"{row['floor']:.4f}", f"{row['apart']:.2f}"
        shown.add_row(policy, *distances, f"{100 * row['in_walls']:.1f}")
    return shown


def _walkers_table(metrics: Metrics) -> Table:
    found = metrics["walkers"]
    shown = Table(
        title=f"{metrics['maze']}: walkers",
        caption=f"speed: units per step in the open, mean and slowest of all ants and directions; on their backs: of "
        f"{found['ants']} ants after {found['steps']:,} steps of random switching, turns of 1 to 40 steps, %, exact "
        "95% intervals",
    )
    for column in ("speed", "slowest", *(f"on their backs {name}" for name in found["down"])):
        shown.add_column(column, justify="right")
    down = (
        f"{100 * d['mean']:.1f} [{100 * d['low']:.1f}, {100 * d['high']:.1f}]" for d in found["down"].values()
    )
    shown.add_row(f"{found['speed']:.3f}", f"{found['slowest']:.3f}", *down)
    return shown


def plot(metrics: Metrics) -> Figure:
    """Success of every agent; V of the landmarks with the best policy at some of them, and the path of an episode."""
    canvas, axes = style.figure(1, 2, size=(5.4, 4.2), width_ratios=(1, 1.6))
    _draw_success(axes[0, 0], metrics)
    draw_maze(axes[0, 1], np.array(metrics["free"]), np.array(metrics["low"]), np.array(metrics["high"]))
    draw_values(axes[0, 1], metrics["picture"])
    return canvas


def _draw_success(ax: Axes, metrics: Metrics) -> None:
    """Bars of ours and, below them, of what was published."""
    ours = {name: 100 * row["all"]["mean"] for name, row in metrics["success"].items()}
    theirs = {f"{name}, published": mean for name, mean in means(metrics["maze"]).items()}
    names = [*ours, *theirs]
    colours = [style.BLUE] * len(ours) + [style.GREY] * len(theirs)
    values = [*ours.values(), *theirs.values()]
    ax.barh(range(len(names)), values, color=colours, height=0.7)
    for row, value in enumerate(values):
        ax.text(value + 1, row, f"{value:.0f}", va="center", fontsize=7, color=style.INK)
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.invert_yaxis()
    ax.set_xlim(0, 112)
    ax.set_title(f"{metrics['maze']}: goals reached, %", fontsize=9, color=style.INK)
