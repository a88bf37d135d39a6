"""Cross-entropy temporal-difference learning on the simplex: two MDPs of three states and one action.

Each state x has logits φ(x), and μ(·|x) = softmax(φ(x)) is to become the distribution of the state after a
Geometric(1−γ) time. At step k every x gets a transition x′ ∼ P(·|x) and a sample x″ ∼ μ_k(·|x′), and

    φ(x) ← φ(x) + ε_k ((1−γ) e_{x′} + γ e_{x″} − μ_k(·|x)),      ε_k = 0.75 (k+1)^−0.6.

Theorem 6.3: with Σ ε = ∞ and Σ ε² < ∞, μ_k → μ^π_γ, the only fixed point of T^π. The error shown is

    max_x ½ Σ_y |μ_k(y|x) − μ^π_γ(y|x)|,

the largest total variation over rows. In the second MDP the first state is left for ever, so μ^π_γ has zeros
and lies on the simplex's boundary. There learning is slow: a step lowers a logit by at most ε times its
present probability, so probabilities near 0 shrink ever more slowly.

As a yardstick, CEMC takes the same steps towards true samples of μ^π_γ instead of its own.

The path drawn is that of the first seed, after every tenth step as in the paper; late in the run, where ten
steps change little that can be seen, records are thinned to even spacing on a logarithmic axis.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi import envs
from ggpi.envs.examples import CETD_LOGITS
from ggpi.ghm import ExactGHM, cemc, cetd, polynomial_steps
from ggpi.lab import style
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.contract import Cells, compute

WORLDS = {"interior": "Fig 8: all states recur", "boundary": "Fig 9: the first state is left for ever"}
LEARNERS = {"cetd": cetd, "cemc": cemc}
ROW_COLOURS = style.BLUE, style.GREEN, style.PURPLE


@dataclass(frozen=True)
class Config:
    gamma: float = 0.9
    """Horizon γ of the model."""
    num_steps: int = 100_000
    """Synchronous updates."""
    step_scale: float = 0.75
    """ε₀ in ε_k = ε₀ (k+1)^−p."""
    step_power: float = 0.6
    """p in ε_k = ε₀ (k+1)^−p."""
    record_every: int = 10
    """Steps between recorded models."""
    num_seeds: int = 20
    """Independent runs; the paper shows one."""
    num_points: int = 3_000
    """How finely records are kept: at most so many, all of the first tenth of that."""
    seed: int = 0
    """Random seed of the first run."""

    def __post_init__(self):
        if self.num_seeds < 1 or self.num_points < 2:
            raise ValueError(f"num_seeds ≥ 1 and num_points ≥ 2, got {self.num_seeds} and {self.num_points}")


PRESETS = {
    "tiny": Config(num_steps=20_000, num_seeds=4, num_points=500),
    "cpu": Config(),
    "paper": Config(num_seeds=100),
}


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Errors of both learners in both worlds, and a path of CETD.

    Paper: Fig 8, Fig 9, Thm 6.3
    """
    tasks = {
        f"{world}/{learner}": partial(learn, config, world, learner)
        for world in WORLDS
        for learner in LEARNERS
    }
    results = cells(tasks)
    return {
        "gamma": config.gamma,
        "num_steps": config.num_steps,
        "num_seeds": config.num_seeds,
        "worlds": [
            {
                "world": world,
                "P": _mdp(world).P[:, 0],
                "fixed_points": _fixed_points(config, world),
                **{learner: results[f"{world}/{learner}"] for learner in LEARNERS},
            }
            for world in WORLDS
        ],
    }


def learn(config: Config, world: str, learner: str) -> dict[str, Any]:
    """Runs one learner from every seed; keeps its errors, and the first seed's path.

    Paper: Fig 9
    """
    mdp = _mdp(world)

    def one(seed):
        return LEARNERS[learner](
            mdp,
            np.ones((mdp.num_states, 1)),
            config.gamma,
            num_steps=config.num_steps,
            step_size=polynomial_steps(config.step_scale, config.step_power),
            logits=CETD_LOGITS[:, None, :],
            record_every=config.record_every,
            key=jax.random.key(seed),
        ).mu[:, :, 0]

    first = np.asarray(jax.nn.softmax(CETD_LOGITS, axis=-1))
    learned = np.asarray(jax.vmap(one)(config.seed + np.arange(config.num_seeds)))
    models = np.concatenate([np.broadcast_to(first, (len(learned), 1, *first.shape)), learned], axis=1)
    errors = np.abs(models - _fixed_points(config, world)).sum(axis=-1).max(axis=-1) / 2
    kept = thinned(models.shape[1], config.num_points)
    return {
        "final_errors": errors[:, -1],
        "final_error": mean_interval(errors[:, -1]),
        "largest_final_error": errors[:, -1].max(),
        "steps": kept * config.record_every,
        "error_mean": errors[:, kept].mean(axis=0).round(5),
        "error_low": np.percentile(errors[:, kept], 10, axis=0).round(5),
        "error_high": np.percentile(errors[:, kept], 90, axis=0).round(5),
    } | ({"path": models[0, kept].round(5)} if learner == "cetd" else {})


def thinned(length: int, num_points: int) -> np.ndarray:
    """Indices from 0 to length − 1: all of the early ones, later ones evenly spaced in their logarithm."""
    return np.unique(np.geomspace(1, length, num_points).round().astype(int)) - 1


def _mdp(world: str):
    return envs.three_states(transient=world == "boundary")


def _fixed_points(config: Config, world: str) -> np.ndarray:
    """μ^π_γ(·|x), one row for each state."""
    mdp = _mdp(world)
    return ExactGHM(mdp, np.ones((mdp.num_states, 1)), config.gamma).dense()[:, 0]


def table(metrics: dict[str, Any]) -> Table:
    """The final errors."""
    title = f"Largest total variation error over rows after {metrics['num_steps']:,} steps"
    shown = Table(
        title=title, caption=f"mean over {metrics['num_seeds']} seeds, with a bootstrapped 95% interval"
    )
    for column in ("fixed points", "learner", "mean", "95%", "largest"):
        shown.add_column(column, justify="left" if column in ("fixed points", "learner") else "right")
    for world in metrics["worlds"]:
        for learner in LEARNERS:
            error = world[learner]["final_error"]
            interval = f"{error['low']:.4f} – {error['high']:.4f}"
            largest = f"{world[learner]['largest_final_error']:.4f}"
            shown.add_row(
                f"in the {world['world']}" if world["world"] == "interior" else "on the boundary",
                learner.upper(),
                f"{error['mean']:.4f}",
                interval,
                largest,
            )
    return shown


def plot(metrics: dict[str, Any]) -> Figure:
    """For each world: the path on the simplex, and the error against the step."""
    canvas, axes = style.figure(2, 2, size=(4.4, 3.6))
    for row, world in zip(axes, metrics["worlds"], strict=True):
        draw_simplex(row[0], world)
        row[0].set_title(WORLDS[world["world"]], fontsize=10, color=style.INK, pad=16)
        draw_errors(row[1], world, metrics["num_seeds"])
    axes[0, 0].legend(loc="upper right", bbox_to_anchor=(1.08, 1.0), fontsize=8, frameon=False)
    axes[0, 1].legend(loc="lower left", fontsize=8, frameon=False)
    axes[0, 1].set_title("Largest total variation over rows", fontsize=10, color=style.INK)
    axes[-1, 1].set_xlabel("step", fontsize=9)
    return canvas


def draw_simplex(ax: Axes, world: dict[str, Any]) -> None:
    """The triangle of distributions over three states, with the path of each row of μ to its fixed point."""
    ax.plot(*on_plane(np.eye(3)[[0, 1, 2, 0]]), color=style.GREY, linewidth=1, zorder=1)
    for x, colour in enumerate(ROW_COLOURS):
        path = on_plane(np.array(world["cetd"]["path"])[:, x])
        ax.plot(*path, color=colour, linewidth=0.5, alpha=0.8, zorder=2)
        ax.plot(*path[:, :1], "o", color="white", markeredgecolor=colour, markersize=6, zorder=3)
        ax.plot([], [], color=colour, linewidth=2, label=f"μ(·|x={x + 1})")
    ax.plot([], [], "o", color="white", markeredgecolor=style.INK, markersize=6, label="start")
    ax.plot(
        *on_plane(np.array(world["fixed_points"])),
        "o",
        color="red",
        markersize=4,
        zorder=4,
        label="fixed points",
    )
    for corner, (away_x, away_y) in enumerate([(-0.04, -0.03), (0.04, -0.03), (0, 0.04)]):
        x, y = on_plane(np.eye(3)[corner])
        ax.text(
            x + away_x,
            y + away_y,
            f"x={corner + 1}",
            ha="center",
            va="bottom" if corner == 2 else "top",
            fontsize=8,
        )
    ax.set_aspect("equal")
    ax.set_axis_off()


def on_plane(distributions: np.ndarray) -> np.ndarray:
    """Distributions over three states [..., 3] as points of an equilateral triangle [2, ...]."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    return np.moveaxis(distributions @ corners, -1, 0)


def draw_errors(ax: Axes, world: dict[str, Any], num_seeds: int) -> None:
    """Mean error over seeds and the band of the middle 80%, both axes logarithmic."""
    styles = {"cetd": (style.RED, "-"), "cemc": (style.INK, "--")}
    for learner, (colour, line) in styles.items():
        curve = world[learner]
        steps = curve["steps"][1:]
        ax.fill_between(
            steps, curve["error_low"][1:], curve["error_high"][1:], color=colour, alpha=0.15, linewidth=0
        )
        label = f"{learner.upper()}, {num_seeds} seeds, 80% band"
        ax.plot(steps, curve["error_mean"][1:], line, color=colour, linewidth=1.2, label=label)
        ax.annotate(
            f"{curve['final_error']['mean']:.3f}",
            (steps[-1], curve["error_mean"][-1]),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(0.004, 1)
