"""Tables, figure and film of `ant-policies`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.envs.ant import SparseAnt
from ggpi.envs.ant.render import Camera
from ggpi.envs.directions import DIRECTIONS, HEADINGS
from ggpi.lab import style
from ggpi.lab.ant.base_policies import FRESH, Config
from ggpi.lab.cells import Metrics
from ggpi.storage.pretrained import pretrained


def table(metrics: Metrics) -> list[Table]:
    """Requirements and measurements; then the ablation."""
    return [_bar_table(metrics), _ablation_table(metrics)]


def _bar_table(metrics: Metrics) -> Table:
    shipped, bar = metrics["shipped"], metrics["bar"]
    shown = Table(title="The ant's base policies in new episodes", title_justify="left")
    for column in ("", "required", "measured", ""):
        shown.add_column(column)
    slow, wide, late = min(shipped["speed"]), max(shipped["lateral"]), max(shipped["steps_to_share"])
    rows = (
        ("slowest policy, units per step", f"≥ {bar['speed']:.2f}", f"{slow:.3f}", slow >= bar["speed"]),
        (
            "widest |lateral|, units per step",
            f"≤ {bar['lateral']:.2f}",
            f"{wide:.3f}",
            wide <= bar["lateral"],
        ),
        ("slowest switch, steps to 80%", f"≤ {bar['steps']}", f"{late}", late <= bar["steps"]),
        (
            f"upside down, of {shipped['episodes']} episodes",
            f"≤ {bar['down']:.0%}",
            f"{shipped['down']:.1%}",
            shipped["down"] <= bar["down"],
        ),
    )
    for what, required, measured, is_met in rows:
        shown.add_row(what, required, measured, "[green]✓[/green]" if is_met else "[red]✗[/red]")
    return shown


def _ablation_table(metrics: Metrics) -> Table:
    title = f"Training with and without switches, {metrics['ablation_rounds']} rounds each"
    shown = Table(title=title, title_justify="left")
    for column in ("trained", "alone, units per step", "12 steps after a switch", "upside down"):
        shown.add_column(column)
    for name in ("switched", "unswitched"):
        result = metrics[f"ablation/{name}"]
        after = np.mean(result["after_switch"], axis=0)[11]
        shown.add_row(name, f"{np.mean(result['speed']):.3f}", f"{after:.3f}", f"{result['down']:.1%}")
    return shown


def plot(metrics: Metrics) -> Figure:
    """Traces, speed after a switch, training curves, ablation."""
    canvas, axes = style.figure(2, 3, size=(3.6, 3.2))
    _draw_alone(axes[0, 0], metrics["traces"])
    _draw_mixed(axes[0, 1], metrics["traces"])
    _draw_switch(axes[0, 2], metrics)
    _draw_curves(axes[1, 0], axes[1, 1], metrics["curves"])
    _draw_ablation(axes[1, 2], metrics)
    return canvas


def _draw_alone(ax: Axes, paths: Metrics) -> None:
    each = len(paths["alone"]) // len(DIRECTIONS)
    for i, path in enumerate(paths["alone"]):
        x, y = np.array(path).T
        name = list(DIRECTIONS)[i // each] if i % each == 0 else None
        ax.plot(x, y, color=style.PALETTE[i // each], linewidth=0.9, label=name)
    ax.set(title="each policy alone", aspect="equal", xlabel="units from the start")
    ax.legend(frameon=False, fontsize=7)


def _draw_mixed(ax: Axes, paths: Metrics) -> None:
    for path, turns in zip(paths["mixed"], paths["turns"], strict=True):
        places, turns = np.array(path), np.array(turns)
        for k in range(len(DIRECTIONS)):
            held = np.concatenate([turns == k, [False]]) | np.concatenate([[False], turns == k])
            x, y = np.where(held[:, None], places, np.nan).T
            ax.plot(x, y, color=style.PALETTE[k], linewidth=0.9)
    ax.set(title="random switching", aspect="equal", xlabel="units from the start")


def _draw_switch(ax: Axes, metrics: Metrics) -> None:
    shipped, bar = metrics["shipped"], metrics["bar"]
    after, speed = np.array(shipped["after_switch"]), np.mean(shipped["speed"])
    steps = np.arange(1, after.shape[1] + 1)
    ax.plot(steps, after.T, color=style.GREY, linewidth=0.6)
    ax.plot(steps, after.mean(axis=0), color=style.BLUE, linewidth=1.8, label="mean of the 12 pairs")
    ax.axhline(bar["share"] * speed, color=style.RED, linewidth=0.8, linestyle="--", label="80% of steady")
    ax.axvline(bar["steps"], color=style.RED, linewidth=0.8, linestyle=":")
    ax.set(title="after a switch", xlabel="steps since the switch", ylabel="units per step")
    ax.legend(frameon=False, fontsize=7)


def _draw_curves(speed: Axes, falls: Axes, curves: Metrics) -> None:
    for (name, curve), colour in zip(curves.items(), style.PALETTE, strict=False):
        steps, along, down = (_smooth(curve[column]) for column in ("steps", "along", "falls"))
        speed.plot(steps / 1e6, along, color=colour, label=name.upper())
        falls.plot(steps / 1e6, 120 * down, color=colour, label=name.upper())
    speed.set(title="training: speed, turns included", xlabel="million steps", ylabel="units per step")
    falls.set(title="training: falls in 120 steps", xlabel="million steps", ylim=(0, None))
    speed.legend(frameon=False, fontsize=7)


def _smooth(values: list[float]) -> np.ndarray:
    """Means of nine neighbours, as far as there are nine."""
    return np.convolve(values, np.ones(9) / 9, "valid") if len(values) >= 9 else np.array(values)


def _draw_ablation(ax: Axes, metrics: Metrics) -> None:
    for name, colour in (("switched", style.BLUE), ("unswitched", style.PURPLE)):
        result = metrics[f"ablation/{name}"]
        after = np.mean(result["after_switch"], axis=0)
        ax.plot(np.arange(1, len(after) + 1), after, color=colour, label=f"trained {name}")
        ax.axhline(np.mean(result["speed"]), color=colour, linewidth=0.8, linestyle="--")
    ax.set(title="ablation; dashed: alone", xlabel="steps since the switch", ylabel="units per step")
    ax.legend(frameon=False, fontsize=7)


def film(config: Config, metrics: Metrics) -> list[np.ndarray]:
    """One ant, the policies taking turns of 25 steps; the green disc lies in the wanted direction."""
    import jax

    policies, env, camera = pretrained("ant-policies"), SparseAnt(target=None), Camera()
    state, _ = env.reset(seed=FRESH + config.seed)
    pictures = []
    for t, key in enumerate(jax.random.split(jax.random.key(config.seed), 100)):
        turn = t // 25 % len(policies)
        state, *_ = env.step(np.asarray(policies[turn].sample(state, key=key)))
        pictures.append(camera.picture(env.data, state[:2] + 2 * HEADINGS[turn], 0.25))
    camera.close()
    return pictures
