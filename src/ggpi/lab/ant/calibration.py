"""How close the ant's models are to simulation, reported before anything is planned with them.

A model that is too wide makes depth 1 look perfect, so success means little without this.
"""

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from ggpi.diagnosis.distances import mean_energy
from ggpi.diagnosis.measures import moments
from ggpi.diagnosis.samples import draw_at
from ggpi.diagnosis.truth import on_policy_truth, random_rows
from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.envs.directions import HEADINGS
from ggpi.ghm.base import GHMs
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import AnyFit, models
from ggpi.lab.cells import Metrics
from ggpi.rollout.collection import collect


def calibration(
    ghms: GHMs, num_pairs: int = 64, num_futures: int = 64, seed: int = ant.CHOOSING
) -> dict[str, list[Metrics]]:
    """Mean and spread of displacement along and across the motion, of models and of simulation, for each horizon.

    From states that random switching visits; `within` is the spread of futures from one state, the mean over states.
    """
    env = SparseAntVector(64, target=None)
    states = random_rows(
        collect(env, ghms.policies, 6_400, switch_every=40, seed=seed), num_pairs, seed
    ).state
    return {
        f"{ghms.horizon(alpha):g}": [
            _calibration_of(ghms, alpha, k, states, num_futures, seed) for k in range(len(ghms.policies))
        ]
        for alpha in (None, *ghms.alphas)
    }


def _calibration_of(
    ghms: GHMs, alpha: float | None, k: int, states: np.ndarray, num_futures: int, seed: int
) -> Metrics:
    policy, key = ghms.policies[k], jax.random.key(k)
    truth = on_policy_truth(
        AntDynamics(), policy, states, ghms.horizon(alpha), num_futures, seeds=[seed + k], key=key
    )
    drawn = draw_at(ghms.segment(k, alpha), truth, key=key)
    axes = np.stack([HEADINGS[k], HEADINGS[(k + 1) % 4]], axis=1)
    true, ours = ((part - states[:, None])[..., :2] @ axes for part in (truth.future, drawn))
    return {
        "policy": policy.name,
        "energy": mean_energy(true, ours, moments(true)["spread"]),
        "true": _displacement(true),
        "model": _displacement(ours),
    }


def _displacement(moved: np.ndarray) -> dict[str, float]:
    found = moments(moved)
    return {
        "mean": float(found["mean"][0]),
        "along": float(found["spread"][0]),
        "across": float(found["spread"][1]),
        "within_along": float(found["within"][0]),
        "within_across": float(found["within"][1]),
    }


def ratios(found: dict[str, list[Metrics]]) -> dict[str, dict[str, float]]:
    """Model over truth, the mean over policies, for each horizon; and the mean energy distance."""
    names = ("mean", "along", "across", "within_along", "within_across")
    return {
        horizon: {
            name: float(
                np.mean([row["model"][name] for row in rows]) / np.mean([row["true"][name] for row in rows])
            )
            for name in names
        }
        | {"energy": float(np.mean([row["energy"] for row in rows]))}
        for horizon, rows in found.items()
    }


def calibrate(fit: AnyFit, num_pairs: int = 64, num_futures: int = 64) -> dict[str, dict[str, float]]:
    """The ratios of the models of a config."""
    return ratios(calibration(models(fit), num_pairs, num_futures))


def announce(found: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Prints the table of these ratios to stderr, and returns them."""
    Console(stderr=True).print(calibration_table(found))
    return found


def calibration_table(ratios: dict[str, dict[str, float]]) -> Table:
    """Displacements of the models divided by those of simulation."""
    found = Table(title="Models against simulation: 1 is perfect", title_justify="left")
    for column in (
        "horizon",
        "mean along",
        "spread along",
        "spread across",
        "across, at one (x, a)",
        "energy",
    ):
        found.add_column(column, justify="right")
    for horizon, row in ratios.items():
        numbers = [row[name] for name in ("mean", "along", "across", "within_across")]
        found.add_row(horizon, *(f"{number:.2f}" for number in numbers), f"{row['energy']:.3f}")
    return found
