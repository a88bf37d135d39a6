"""The ant's four base policies: do they walk, and do they take over from each other?

The paper trains policies that walk right, up, left and down *jointly*, the direction being switched every
Uniform(40) steps, because policies that were each trained by themselves compose badly. Here the shipped
policies are put to the test in fresh worlds, as they are used: with sampled actions.

    alone             steady speed along the direction, and across it
    after a switch    share of that speed at each step after any other policy's turn of 40 steps
    random switching  which ants lie on their backs after 120 steps

The ablation trains twice with the same small budget, once with switches and once without: then a policy
meets only the states that it brought about itself.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.envs.ant import SparseAnt
from ggpi.envs.ant.render import Camera
from ggpi.envs.ant.symmetry import DIRECTIONS
from ggpi.lab import style
from ggpi.lab.contract import Cells, compute
from ggpi.lab.pretraining import Training, preset
from ggpi.lab.pretraining.trials import Trial, one_each, one_switch, random_switches, trial
from ggpi.lab.pretraining.walking import HEADINGS
from ggpi.storage.pretrained import other_trainings, pretrained, provenance

BAR = {"speed": 0.20, "lateral": 0.05, "share": 0.8, "steps": 12, "down": 0.05}
FRESH = 2_000_000_000
"""Training uses the seeds near 10⁶ · its own seed; trials begin here."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the fresh worlds."""
    episodes: int = 128
    """Episodes of each policy alone, and four times as many under random switching."""
    pair_episodes: int = 100
    """Episodes of each ordered pair of policies, with one switch."""
    steps: int = 120
    """Steps of an episode."""
    settled: int = 40
    """Steps until the walk counts as steady; also the length of a turn before a switch."""
    switch_every: int = 40
    """Random switching: a turn lasts Uniform(1, this) steps."""
    ablation_rounds: int = 150
    """Training rounds of the ablation."""
    ablation_ants: int = 256
    """Ants that train in the ablation: with these defaults it has a fifteenth of the shipped policies' steps."""


PRESETS = {
    "tiny": Config(episodes=8, pair_episodes=2, steps=60, settled=30, ablation_rounds=1, ablation_ants=8),
    "cpu": Config(),
    "paper": Config(episodes=1000, pair_episodes=1000, ablation_rounds=1100, ablation_ants=512),
}


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """The shipped policies' numbers, their training curves, and the ablation's numbers.

    Paper: App E.1
    """
    results = cells(
        {
            "shipped": lambda: measure(config, pretrained("ant-policies")),
            "traces": partial(traces, config),
            "ablation/switched": partial(ablation, config, config.switch_every),
            "ablation/unswitched": partial(ablation, config, 0),
        }
    )
    about = provenance("ant-policies")
    trainings = {about["config"]["algorithm"]: about, **other_trainings("ant-policies")}
    return {
        **results,
        "bar": BAR,
        "ablation_rounds": config.ablation_rounds,
        "made_by": about["command"],
        "curves": {name: _thinned(training["curve"]) for name, training in trainings.items()},
    }


def measure(config: Config, policies: Any) -> dict[str, Any]:
    """Alone, after one switch, and under random switching."""
    count, seed = len(policies), FRESH + 1_000_000 * config.seed
    alone = trial(policies, one_each(count, config.steps, config.episodes), seed)
    along, across = (part[config.settled :].reshape(-1, count, config.episodes) for part in alone.moved())
    turns = one_switch(count, config.settled, 30, config.pair_episodes)
    after, _ = trial(policies, turns, seed + 100_000).moved()
    curves = after[config.settled :].reshape(30, -1, config.pair_episodes).mean(axis=2)
    speed = along.mean()
    reached = curves >= BAR["share"] * speed
    turns = random_switches(count, config.switch_every, config.steps, 4 * config.episodes, seed)
    mixed = trial(policies, turns, seed + 200_000)
    return {
        "speed": along.mean(axis=(0, 2)),
        "lateral": np.abs(across).mean(axis=(0, 2)),
        "drift": np.abs(across.mean(axis=0)).mean(axis=1),
        "after_switch": curves.T,
        "steps_to_share": np.where(reached.any(axis=0), reached.argmax(axis=0) + 1, 31),
        "down_alone": alone.upside_down().mean(),
        "down": mixed.upside_down().mean(),
        "episodes": int(turns.shape[1]),
    }


def traces(config: Config) -> dict[str, Any]:
    """Paths from a common origin: eight of each policy alone, and eight under random switching."""
    policies, seed = pretrained("ant-policies"), FRESH + 1_000_000 * config.seed + 300_000
    turns = random_switches(len(policies), config.switch_every, config.steps, 8, seed)
    return {
        "alone": _paths(trial(policies, one_each(len(policies), config.steps, 8), seed)),
        "mixed": _paths(trial(policies, turns, seed + 100)),
        "turns": turns.T,
    }


def _paths(seen: Trial) -> Any:
    places = seen.states[:, :, :2] - seen.states[0, :, :2]
    return np.round(places.transpose(1, 0, 2).astype(float), 2)


def ablation(config: Config, switch_every: int) -> dict[str, Any]:
    """PPO with a small budget, with or without switches in training; then the same trials."""
    base = preset("cpu", "ppo")
    walk = replace(base.walk, num_ants=config.ablation_ants, switch_every=switch_every)
    training = Training(replace(base, seed=config.seed + 1, walk=walk))
    for _ in range(config.ablation_rounds):
        training.round()
    return measure(config, training.policies())


def _thinned(curve: dict[str, Any]) -> dict[str, Any]:
    every = max(1, len(curve["steps"]) // 200)
    return {name: values[::every] for name, values in curve.items()}


def table(metrics: dict[str, Any]) -> list[Table]:
    """What is asked, and what was measured; then the ablation."""
    return [_bar_table(metrics), _ablation_table(metrics)]


def _bar_table(metrics: dict[str, Any]) -> Table:
    shipped, bar = metrics["shipped"], metrics["bar"]
    shown = Table(title="The ant's base policies in fresh worlds", title_justify="left")
    for column in ("", "asked", "measured", ""):
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
    for what, asked, measured, kept in rows:
        shown.add_row(what, asked, measured, "[green]✓[/green]" if kept else "[red]✗[/red]")
    return shown


def _ablation_table(metrics: dict[str, Any]) -> Table:
    title = f"Training with and without switches, {metrics['ablation_rounds']} rounds each"
    shown = Table(title=title, title_justify="left")
    for column in ("trained", "alone, units per step", "12 steps after a switch", "upside down"):
        shown.add_column(column)
    for name in ("switched", "unswitched"):
        result = metrics[f"ablation/{name}"]
        after = np.mean(result["after_switch"], axis=0)[11]
        shown.add_row(name, f"{np.mean(result['speed']):.3f}", f"{after:.3f}", f"{result['down']:.1%}")
    return shown


def plot(metrics: dict[str, Any]) -> Figure:
    """Traces, speed after a switch, training curves, ablation."""
    canvas, axes = style.figure(2, 3, size=(3.6, 3.2))
    _draw_alone(axes[0, 0], metrics["traces"])
    _draw_mixed(axes[0, 1], metrics["traces"])
    _draw_switch(axes[0, 2], metrics)
    _draw_curves(axes[1, 0], axes[1, 1], metrics["curves"])
    _draw_ablation(axes[1, 2], metrics)
    return canvas


def _draw_alone(ax: Any, paths: dict[str, Any]) -> None:
    each = len(paths["alone"]) // len(DIRECTIONS)
    for i, path in enumerate(paths["alone"]):
        x, y = np.array(path).T
        name = DIRECTIONS[i // each] if i % each == 0 else None
        ax.plot(x, y, color=style.PALETTE[i // each], linewidth=0.9, label=name)
    ax.set(title="each policy alone", aspect="equal", xlabel="units from the start")
    ax.legend(frameon=False, fontsize=7)


def _draw_mixed(ax: Any, paths: dict[str, Any]) -> None:
    for path, turns in zip(paths["mixed"], paths["turns"], strict=True):
        places, turns = np.array(path), np.array(turns)
        for k in range(len(DIRECTIONS)):
            held = np.concatenate([turns == k, [False]]) | np.concatenate([[False], turns == k])
            x, y = np.where(held[:, None], places, np.nan).T
            ax.plot(x, y, color=style.PALETTE[k], linewidth=0.9)
    ax.set(title="random switching", aspect="equal", xlabel="units from the start")


def _draw_switch(ax: Any, metrics: dict[str, Any]) -> None:
    shipped, bar = metrics["shipped"], metrics["bar"]
    after, speed = np.array(shipped["after_switch"]), np.mean(shipped["speed"])
    steps = np.arange(1, after.shape[1] + 1)
    ax.plot(steps, after.T, color=style.GREY, linewidth=0.6)
    ax.plot(steps, after.mean(axis=0), color=style.BLUE, linewidth=1.8, label="mean of the 12 pairs")
    ax.axhline(bar["share"] * speed, color=style.RED, linewidth=0.8, linestyle="--", label="80% of steady")
    ax.axvline(bar["steps"], color=style.RED, linewidth=0.8, linestyle=":")
    ax.set(title="after a switch", xlabel="steps since the switch", ylabel="units per step")
    ax.legend(frameon=False, fontsize=7)


def _draw_curves(speed: Any, falls: Any, curves: dict[str, Any]) -> None:
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


def _draw_ablation(ax: Any, metrics: dict[str, Any]) -> None:
    for name, colour in (("switched", style.BLUE), ("unswitched", style.PURPLE)):
        result = metrics[f"ablation/{name}"]
        after = np.mean(result["after_switch"], axis=0)
        ax.plot(np.arange(1, len(after) + 1), after, color=colour, label=f"trained {name}")
        ax.axhline(np.mean(result["speed"]), color=colour, linewidth=0.8, linestyle="--")
    ax.set(title="ablation; dashed: alone", xlabel="steps since the switch", ylabel="units per step")
    ax.legend(frameon=False, fontsize=7)


def film(config: Config, metrics: dict[str, Any]) -> list[np.ndarray]:
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
