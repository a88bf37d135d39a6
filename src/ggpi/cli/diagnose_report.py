"""`ggpi diagnose`: saved models against true futures, as a table, a picture and a file of numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table

from ggpi.cli.diagnose_figure import picture
from ggpi.cli.fit_environment import read_data
from ggpi.cli.verdict_table import verdict_table
from ggpi.data import Transitions
from ggpi.diagnosis import diagnose
from ggpi.lab.contract import write_figure
from ggpi.lab.fit_directory import look, read_models, read_world
from ggpi.storage.arrays import write_json

ROWS = {
    "−ELBO/dim": ("negative_elbo", "nll_blank"),
    "NLL/dim": ("nll", "nll_blank"),
    "energy": ("energy", "energy_floor"),
    "EMD": ("emd", "emd_floor"),
    "mean error": ("mean_error", "mean_error_floor"),
    "spread ratio": ("spread_ratio", "spread_ratio_floor"),
    "value error": ("value_error", "value_error_floor"),
    "MSE(V)": ("value_mse", "value_mse_floor"),
    "action": ("action_sensitivity", "action_sensitivity_true"),
    "action response": ("action_response", "action_response_floor"),
    "state": ("state_dependence", "state_dependence_true"),
    "off the data": ("off_data", "off_data_floor"),
    "impossible": ("impossible", "impossible_floor"),
    "horizons": ("consistency", "consistency_floor"),
    "to its teacher": ("teacher_energy", "teacher_energy_floor"),
    "energy of the teacher": ("energy_of_teacher", "energy_floor"),
}
"""Heading → the number, and the one that is printed beside it in brackets."""
CAPTION = (
    "In brackets: what true futures score in place of the model's samples, which is the best that a model can do; "
    "beside a likelihood, what knowing only mean and spread scores, which a model has to beat."
)
UNCHECKED = (
    "A record does not tell what another first action does; the effect of the first action is not checked."
)


def report(
    models: Path,
    env: str | None,
    data: str | None,
    out: Path,
    *,
    keys: Sequence[str] = (),
    teacher: Path | None = None,
    seed: int = 0,
) -> RenderableType:
    """Diagnoses saved models, writes `metrics.json` and `figure.png` to `out`, and gives the tables."""
    ghms, source = read_models(models), read_source(env, data, keys)
    taught = None if teacher is None else read_models(teacher)
    options = {"key": jax.random.key(seed), "keys": keys or None, "seed": seed}
    numbers = diagnose(ghms, None, source, teacher=taught, **options)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "metrics.json", numbers)
    first = next(about for rows in numbers.values() for about in rows.values())
    names = state_names(models, env, keys, len(first["mean_true"]))
    write_figure(out, picture(ghms, source, names, keys, seed))
    return tables(numbers)


def state_names(models: Path, env: str | None, keys: Sequence[str], size: int) -> tuple[str, ...]:
    """Names of the state's coordinates: those of the fit, of the environment, or x0, x1, …"""
    if (models / "world.json").exists():
        found = read_world(models).names
    else:
        found = look(env, keys)[0].names if env is not None else ()
    return found if len(found) == size else tuple(f"x{i}" for i in range(size))


def read_source(env: str | None, data: str | None, keys: Sequence[str] = ()) -> str | Transitions:
    """An environment's id, or the transitions of a file or of a Minari dataset."""
    if env is not None and data is None:
        return env
    if data is not None and env is None:
        return read_data(data, keys)
    raise ValueError("give the truth: either --env ID or --data FILE.npz (or a Minari dataset)")


def tables(numbers: dict[str, Any]) -> RenderableType:
    """A table for each policy, side by side where the terminal has room; a row per measure, a column per horizon."""
    shown = {
        heading: names
        for heading, names in ROWS.items()
        if any(names[0] in about for rows in numbers.values() for about in rows.values())
    }
    left_out = sum(about["left_out"] for rows in numbers.values() for about in rows.values())
    again = f" {left_out} draws of T were beyond the record and were redrawn." if left_out else ""
    return Group(
        "Learned models compared with true futures",
        Columns([_table(policy, rows, shown) for policy, rows in numbers.items()]),
        CAPTION + again,
        verdict_table(numbers, None if "action response" in shown else UNCHECKED),
    )


def _table(policy: str, rows: dict[str, Any], shown: dict[str, tuple[str, str]]) -> Table:
    result = Table()
    result.add_column(policy)
    for horizon in rows:
        result.add_column(f"β = {horizon}", justify="right", no_wrap=True)
    for heading, names in shown.items():
        result.add_row(heading, *(_cell(about, *names) for about in rows.values()))
    return result


def _cell(about: dict[str, Any], name: str, beside: str) -> str:
    if name not in about:
        return ""
    return f"{about[name]:.3g}" + (f" ({about[beside]:.2g})" if beside in about else "")
