"""Zero-shot transfer of the ant: reach a target that no policy was trained for, by planning with learned models.

Four policies walk right, up, left and down. A target lies between two directions: GPI (depth 1) cannot imagine a
turn, depth 2 can. Agents meet the same starts and targets. Beside them stand each base policy alone, random
switching, model-predictive control on a one-step model with as much time, and an *oracle*: the same planner with
true simulator samples in the models' place, which shows what perfect models would score at each depth.

Equal budgets as in the paper: n samples for each of 16 GSPs at depth 2, 4n for each of 4 at depth 1, n/4 for each
of 64 at depth 3. Models are held against simulation first: too wide a model makes depth 1 look perfect.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import ant, style
from ggpi.lab.ant_models import FitConfig, models
from ggpi.lab.ant_mpc import mpc
from ggpi.lab.contract import Cells, compute
from ggpi.lab.statistics import mean_interval

CASES = (
    "depth 2 succeeds, GPI fails",
    "both succeed, depth 2 is faster",
    "both fail",
    "both succeed, GPI is faster",
    "GPI succeeds, depth 2 fails",
    "both succeed, in the same step",
)
PAPER = (50.8, 45.0, 1.0, 2.8, 0.4, None)
COLOURS = {1: style.RED, 2: style.BLUE, 3: style.GREEN}
LEVEL = 0.9


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    preset: str = "paper"
    """How the models are trained: tiny, cpu or paper."""
    num_models: int = 5
    """Seeds of models; the first is shipped for cpu."""
    episodes: int = 100
    """Episodes of each agent, the same for all."""
    samples: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    """Samples n for each GSP of depth 2."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Depths of the plans."""
    radius: float = ant.RADIUS
    """Radius of the target."""
    oracle_episodes: int = 30
    """Episodes of the oracle: the first ones of all."""
    oracle_samples: int = 20
    """The oracle's samples n for each GSP of depth 2: one of those above, to compare with models at."""

    def __post_init__(self):
        if self.oracle_samples not in self.samples:
            raise ValueError(f"oracle_samples is one of {self.samples}, got {self.oracle_samples}")

    @classmethod
    def tiny(cls):
        return cls(0, "tiny", 1, 2, (2,), (1, 2), 2.0, 1, 2)

    @classmethod
    def cpu(cls):
        return cls(preset="cpu", num_models=3)

    @classmethod
    def paper(cls):
        return cls()


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Episodes of every agent.

    Paper: Alg 2, Fig 5, Table 1
    """
    fits = [replace(getattr(FitConfig, config.preset)(), seed=s) for s in range(config.num_models)]
    largest = max(config.samples)
    tasks = {f"models/{s}": partial(calibrate, fit) for s, fit in enumerate(fits)}
    tasks |= {
        f"depth-{depth}/samples-{n}/{s}": partial(plan, config, fit, depth, n)
        for n in config.samples[::-1]
        for depth in config.depths
        for s, fit in enumerate(fits)
    }
    tasks |= {f"alone/{k}": partial(play, config, partial(ant.alone, k)) for k in range(4)}
    tasks |= {"random": partial(play, config, ant.random_switching)}
    tasks |= {
        f"mpc/{s}": partial(play, config, partial(mpc, fit, config.radius)) for s, fit in enumerate(fits)
    }
    tasks |= {f"oracle/depth-{depth}": partial(true_plan, config, depth) for depth in config.depths}
    results = cells(tasks)
    return {
        "num_models": config.num_models,
        "episodes": config.episodes,
        "radius": config.radius,
        "samples": config.samples,
        "depths": config.depths,
        "calibration": [results[f"models/{s}"] for s in range(config.num_models)],
        "ratios": _mean_ratios([results[f"models/{s}"] for s in range(config.num_models)]),
        "curves": {
            str(depth): [_rate(results, config, depth, n) for n in config.samples] for depth in config.depths
        },
        "table": cases(
            [[results[f"depth-{d}/samples-{largest}/{s}"] for d in (1, 2)] for s in range(len(fits))]
        ),
        "baselines": _baselines(results, config, largest),
        "oracle": {
            str(d): _summary([results[f"oracle/depth-{d}"]])
            | {"models_on_the_same": _same_starts(results, config, d)}
            for d in config.depths
        },
        "seconds_per_plan": {
            str(d): float(
                np.mean(
                    [
                        results[f"depth-{d}/samples-{largest}/{s}"]["seconds_per_plan"]
                        for s in range(len(fits))
                    ]
                )
            )
            for d in config.depths
        },
    }


def calibrate(fit: FitConfig) -> dict[str, Any]:
    """How near the models are to simulation, before any planning."""
    return ant.calibration(models(fit))


def plan(config: Config, fit: FitConfig, depth: int, samples: int) -> dict[str, Any]:
    """Episodes of GGPI at a depth.

    Paper: Alg 2
    """
    ghms = models(fit)
    return play(config, lambda: ant.planner(ghms, depth, ant.budget(samples, depth), config.radius))


def true_plan(config: Config, depth: int) -> dict[str, Any]:
    """Episodes of the same planner with the simulator in the models' place.

    Beyond the paper: what perfect models would score
    """
    few = replace(config, episodes=config.oracle_episodes)
    return play(few, lambda: ant.oracle(depth, ant.budget(config.oracle_samples, depth), config.radius))


def play(config: Config, make: Any) -> dict[str, Any]:
    """Steps to the target in each episode (0: not reached, −1: diverged), and the time of a decision."""
    timed = ant.Timed(make())
    outcome = ant.episodes(timed, config.episodes, ant.REPORTED + 1_000_000 * config.seed, config.radius)
    return {"steps": outcome.steps, "seconds_per_plan": timed.seconds_per_decision}


def _rate(results: dict[str, Any], config: Config, depth: int, samples: int) -> dict[str, Any]:
    return _summary([results[f"depth-{depth}/samples-{samples}/{s}"] for s in range(config.num_models)])


def _summary(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Share of episodes that reached the target, with a bootstrap interval over all of them, and the mean steps."""
    steps = np.concatenate([cell["steps"] for cell in cells])
    reached = steps > 0
    per_model = [float(np.mean(np.array(cell["steps"]) > 0)) for cell in cells]
    mean_steps = float(steps[reached].mean()) if reached.any() else None
    return {**mean_interval(reached.astype(float), level=LEVEL), "steps": mean_steps, "per_model": per_model}


def _baselines(results: dict[str, Any], config: Config, largest: int) -> dict[str, Any]:
    found = {f"{name} alone": _summary([results[f"alone/{k}"]]) for k, name in enumerate(ant.NAMES)}
    found["random switching"] = _summary([results["random"]])
    found["MPC, one-step model"] = _summary([results[f"mpc/{s}"] for s in range(config.num_models)])
    return found


def _same_starts(results: dict[str, Any], config: Config, depth: int) -> dict[str, Any]:
    """The learned models on the oracle's episodes alone, with as many samples."""
    parts = [results[f"depth-{depth}/samples-{config.oracle_samples}/{s}"] for s in range(config.num_models)]
    return _summary([{"steps": part["steps"][: config.oracle_episodes]} for part in parts])


def cases(pairs: list[list[dict[str, Any]]]) -> list[dict[str, float]]:
    """Table 1: how often which agent succeeds or is faster, in percent, with intervals over all episodes.

    Paper: Table 1
    """
    one, two = (np.concatenate([pair[i]["steps"] for pair in pairs]) for i in (0, 1))
    won = one > 0, two > 0
    both = won[0] & won[1]
    kinds = [
        ~won[0] & won[1],
        both & (two < one),
        ~won[0] & ~won[1],
        both & (one < two),
        won[0] & ~won[1],
        both & (one == two),
    ]
    return [
        {key: 100 * value for key, value in mean_interval(kind.astype(float), level=LEVEL).items()}
        for kind in kinds
    ]


def _mean_ratios(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    each = [ant.ratios(one) for one in found]
    return {
        horizon: {name: float(np.mean([one[horizon][name] for one in each])) for name in each[0][horizon]}
        for horizon in each[0]
    }


def table(metrics: dict[str, Any]) -> list[Table]:
    """Calibration, Table 1, and success of every agent."""
    return [calibration_table(metrics["ratios"]), _case_table(metrics), _success_table(metrics)]


def calibration_table(ratios: dict[str, dict[str, float]]) -> Table:
    """Displacement of the models over that of simulation."""
    shown = Table(title="Models against simulation: 1 is perfect", title_justify="left")
    for column in (
        "horizon",
        "mean along",
        "spread along",
        "spread across",
        "across, at one (x, a)",
        "energy",
    ):
        shown.add_column(column, justify="right")
    for horizon, row in ratios.items():
        numbers = [row[name] for name in ("mean", "along", "across", "within_across")]
        shown.add_row(horizon, *(f"{number:.2f}" for number in numbers), f"{row['energy']:.3f}")
    return shown


def _case_table(metrics: dict[str, Any]) -> Table:
    shown = Table(title=f"Table 1, {max(metrics['samples'])} samples", title_justify="left")
    for column in ("case", "here, %", "paper, %"):
        shown.add_column(column, justify="left" if column == "case" else "right")
    for words, row, paper in zip(CASES, metrics["table"], PAPER, strict=True):
        shown.add_row(
            words,
            f"{row['mean']:.1f} [{row['low']:.1f}, {row['high']:.1f}]",
            "–" if paper is None else f"{paper:.1f}",
        )
    return shown


def _success_table(metrics: dict[str, Any]) -> Table:
    shown = Table(
        title=f"Success, {metrics['episodes']} episodes, radius {metrics['radius']:g}",
        caption=f"90% bootstrap intervals; learned: {metrics['num_models']} seeds of models",
        title_justify="left",
    )
    for column in ("agent", "success, %", "mean steps"):
        shown.add_column(column, justify="left" if column == "agent" else "right")
    rows = {f"depth {d}" + " (GPI)" * (d == "1"): curve[-1] for d, curve in metrics["curves"].items()}
    rows |= {f"oracle, depth {d}": row for d, row in metrics["oracle"].items()}
    rows |= {
        f"depth {d} on the oracle's episodes and budget": row["models_on_the_same"]
        for d, row in metrics["oracle"].items()
    }
    for words, row in (rows | metrics["baselines"]).items():
        interval = f"{100 * row['mean']:.0f} [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
        shown.add_row(words, interval, "–" if row["steps"] is None else f"{row['steps']:.0f}")
    return shown


def plot(metrics: dict[str, Any]) -> Figure:
    """Success against samples; every agent at the largest budget; how the models are calibrated."""
    canvas, axes = style.figure(1, 3, size=(4.0, 3.2))
    _draw_curves(axes[0, 0], metrics)
    _draw_agents(axes[0, 1], metrics)
    _draw_calibration(axes[0, 2], metrics["calibration"])
    return canvas


def _draw_curves(ax: Axes, metrics: dict[str, Any]) -> None:
    n = metrics["samples"]
    for depth, curve in metrics["curves"].items():
        colour, words = COLOURS[int(depth)], f"depth {depth}" + " (GPI)" * (depth == "1")
        mean, low, high = (
            100 * np.array([point[part] for point in curve]) for part in ("mean", "low", "high")
        )
        ax.fill_between(n, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(n, mean, "-o", color=colour, linewidth=1.3, markersize=3, label=words)
        ax.axhline(100 * metrics["oracle"][depth]["mean"], color=colour, linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.set_xticks(n, [str(i) for i in n])
    ax.minorticks_off()
    ax.set(xlabel="samples per GSP of depth 2 (equal total)", ylabel="targets reached, %", ylim=(0, 103))
    ax.set_title("dotted: the simulator in the models' place", fontsize=9, color=style.INK)
    ax.legend(frameon=False, fontsize=7)


def _draw_agents(ax: Axes, metrics: dict[str, Any]) -> None:
    rows = {f"depth {d}": (curve[-1], COLOURS[int(d)]) for d, curve in metrics["curves"].items()}
    rows |= {f"oracle, depth {d}": (row, style.GREY) for d, row in metrics["oracle"].items()}
    rows |= {name: (row, style.YELLOW) for name, row in metrics["baselines"].items()}
    for i, (row, colour) in enumerate(rows.values()):
        low, high = row["mean"] - row["low"], row["high"] - row["mean"]
        ax.barh(
            i,
            100 * row["mean"],
            color=colour,
            xerr=[[100 * max(low, 0)], [100 * max(high, 0)]],
            ecolor=style.INK,
        )
    ax.set_yticks(range(len(rows)), list(rows), fontsize=7)
    ax.invert_yaxis()
    ax.set(xlabel="targets reached, %", xlim=(0, 103))


def _draw_calibration(ax: Axes, found: list[dict[str, Any]]) -> None:
    marks = {"mean": "o", "along": "s", "across": "^"}
    for (horizon, _), colour in zip(found[0].items(), style.PALETTE, strict=False):
        for name, mark in marks.items():
            points = [(row["true"][name], row["model"][name]) for one in found for row in one[horizon]]
            ax.scatter(*np.array(points).T, marker=mark, s=18, color=colour, label=f"{name}, β = {horizon}")
    largest = ax.get_xlim()[1]
    ax.plot([0, largest], [0, largest], color=style.GREY, linewidth=0.8)
    ax.fill_between(
        [0, largest], [0, 0.8 * largest], [0, 1.2 * largest], color=style.GREY, alpha=0.2, linewidth=0
    )
    ax.set(xlabel="simulated displacement, units", ylabel="the models'")
    ax.set_title("mean, spread along and across; band ±20%", fontsize=9, color=style.INK)
    ax.legend(frameon=False, fontsize=6)
