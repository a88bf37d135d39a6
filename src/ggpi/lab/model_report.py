"""`ggpi diagnose`: saved models against true futures, as a table, a picture and a file of numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table

from ggpi import io, saving
from ggpi.diagnosis import diagnose, true_futures
from ggpi.diagnosis.measures import draw
from ggpi.ghm import GHMs
from ggpi.lab import style
from ggpi.lab.contract import write_figure
from ggpi.lab.own_world import read_data

ROWS = {
    "−ELBO/dim": ("negative_elbo", None),
    "NLL/dim": ("nll", None),
    "energy": ("energy", "energy_floor"),
    "Wasserstein": ("wasserstein", "wasserstein_floor"),
    "mean error": ("mean_error", None),
    "spread ratio": ("spread_ratio", None),
    "value error": ("value_error", "value_error_floor"),
    "action": ("action_sensitivity", "action_sensitivity_true"),
    "state": ("state_dependence", "state_dependence_true"),
    "horizons": ("consistency", None),
}
"""Heading → the number, and the one that is printed beside it in brackets."""
CAPTION = (
    "In brackets: the same for the truth (energy, Wasserstein, value: between two sets of true futures). "
    "Right are: energy, mean error, horizons 0; spread ratio 1; action and state as in brackets."
)


def report(
    models: Path, env: str | None, data: str | None, out: Path, *, keys: Sequence[str] = (), seed: int = 0
) -> RenderableType:
    """Diagnoses saved models, writes `metrics.json` and `figure.png` to `out`, and gives the tables."""
    ghms, source = read_models(models), read_source(env, data, keys)
    numbers = diagnose(ghms, None, source, key=jax.random.key(seed), keys=keys or None, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    io.write_json(out / "metrics.json", numbers)
    write_figure(out, picture(ghms, source, keys, seed))
    return tables(numbers)


def read_models(path: Path) -> GHMs:
    """Models that `ggpi.save` wrote, or those in the directory of a finished `ggpi.fit`."""
    inner = path / "models" if (path / "models").is_dir() else path
    if not (inner / "about.json").exists():
        unfinished = (path / "metrics.jsonl").exists() or (path / "world.json").exists()
        hint = "a fit that is not finished: give the same command again" if unfinished else "no models"
        raise ValueError(f"{path} holds {hint}; expected a directory that ggpi fit or ggpi.save wrote")
    ghms = saving.load(inner)
    if not isinstance(ghms, GHMs):
        raise ValueError(f"{path} holds a {type(ghms).__name__}, not models of policies")
    lacking = [policy.name for policy in ghms.policies if isinstance(policy, saving.Foreign)]
    if lacking:
        raise ValueError(
            f"{path} was saved without the code of {', '.join(lacking)}; call ggpi.diagnose with the policies"
        )
    return ghms


def read_source(env: str | None, data: str | None, keys: Sequence[str] = ()) -> Any:
    """An environment's id, or the transitions of a file or of a Minari dataset."""
    if (env is None) == (data is None):
        raise ValueError("give the truth: either --env ID or --data FILE.npz (or a Minari dataset)")
    if data is None:
        return env
    return read_data(data, keys)


def tables(numbers: dict[str, Any]) -> RenderableType:
    """A table for each policy, side by side where the terminal has room; a row per measure, a column per horizon."""
    shown = {
        heading: names
        for heading, names in ROWS.items()
        if any(names[0] in about for rows in numbers.values() for about in rows.values())
    }
    left_out = sum(about["left_out"] for rows in numbers.values() for about in rows.values())
    again = f" {left_out} draws of T lay beyond the record and were drawn again." if left_out else ""
    return Group(
        "Learned models against true futures",
        Columns([_table(policy, rows, shown) for policy, rows in numbers.items()]),
        CAPTION + again,
    )


def _table(policy: str, rows: dict[str, Any], shown: dict[str, tuple[str, str | None]]) -> Table:
    result = Table()
    result.add_column(policy)
    for horizon in rows:
        result.add_column(f"β = {horizon}", justify="right", no_wrap=True)
    for heading, names in shown.items():
        result.add_row(heading, *(_cell(about, *names) for about in rows.values()))
    return result


def _cell(about: dict[str, Any], name: str, beside: str | None) -> str:
    if name not in about:
        return ""
    return f"{about[name]:.3g}" + (f" ({about[beside]:.2g})" if beside in about else "")


def picture(ghms: GHMs, source: Any, keys: Sequence[str], seed: int) -> Figure:
    """Samples of each model over true futures, in the first two coordinates."""
    horizons = [None, *ghms.alphas]
    canvas, axes = style.figure(len(ghms.policies), len(horizons), size=(3.2, 2.8))
    for k in range(len(ghms.policies)):
        for column, alpha in enumerate(horizons):
            beta = ghms.horizon(alpha)
            sizes: dict[str, Any] = {"num_pairs": 1, "num_samples": 400, "keys": keys or None, "seed": seed}
            truth = true_futures(source, ghms.policies, k, beta, **sizes)
            drawn = draw(
                ghms.segment(k, alpha),
                truth.state,
                truth.action,
                truth.future.shape[1],
                key=jax.random.key(seed),
            )
            _panel(axes[k, column], truth, drawn)
            axes[k, column].set_xlabel("coordinate 0", fontsize=8, color=style.INK)
            axes[k, column].set_title(f"{ghms.names[k]}, β = {beta:g}", fontsize=9, color=style.INK)
    axes[0, 0].legend(fontsize=7, frameon=False)
    return canvas


def _panel(ax: Any, truth: Any, drawn: np.ndarray) -> None:
    """One pair's futures; displacements of many pairs when each has but one."""
    many = truth.future.shape[1] == 1
    start = np.zeros(truth.state.shape[1]) if many else truth.state[0]
    clouds = [
        (values - truth.state[:, None])[:, 0] if many else values[0] for values in (truth.future, drawn)
    ]
    looks = (("truth", style.GREY), ("model", style.BLUE))
    if len(start) == 1:
        low, high = np.quantile(np.concatenate(clouds), [0.005, 0.995])
        bins = np.linspace(low, high, 40)
        for cloud, (label, colour) in zip(clouds, looks, strict=True):
            ax.hist(cloud[:, 0], bins, color=colour, alpha=0.6, label=label)
        return
    for cloud, (label, colour) in zip(clouds, looks, strict=True):
        ax.scatter(*cloud[:, :2].T, s=5, color=colour, alpha=0.5, linewidths=0, label=label)
    ax.plot(*start[:2], "*", color=style.RED, markersize=9, label="x")
    ax.set_ylabel("coordinate 1", fontsize=8, color=style.INK)
