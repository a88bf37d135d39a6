"""How near the ant's models are to simulation: told before anything is planned with them.

Too wide a model makes depth 1 look perfect, so success means little without this.
"""

from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from ggpi.diagnosis.distances import energy_distance
from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.envs.directions import HEADINGS
from ggpi.ghm.base import GHMs
from ggpi.lab.agents import sample_model, sample_policy
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import FitConfig, models
from ggpi.policies.bank import PolicyBank
from ggpi.rollout.collection import collect
from ggpi.rollout.futures import simulate_futures


def calibration(
    ghms: GHMs, num_pairs: int = 64, num_futures: int = 64, seed: int = ant.CHOOSING
) -> dict[str, Any]:
    """Mean and spread of displacement along and across the motion, models against simulation, for both horizons.

    From states met under random switching; `within` is the spread at one pair (x, a), the mean over pairs.
    """
    policies = ghms.policies
    env = SparseAntVector(64, target=None)
    seen = collect(env, policies, 6_400, switch_every=40, seed=seed)
    rows = np.random.default_rng(seed).choice(len(seen), num_pairs, replace=False)
    states = np.repeat(seen.state[rows], num_futures, axis=0)
    return {
        f"{horizon:g}": [
            _calibration_of(ghms, horizon, k, states, num_pairs, seed) for k in range(len(policies))
        ]
        for horizon in ghms.horizons
    }


def _calibration_of(
    ghms: GHMs, horizon: float, k: int, states: np.ndarray, num_pairs: int, seed: int
) -> dict[str, Any]:
    policy, key = ghms.policies[k], jax.random.key(k)
    model = jax.tree.map(lambda leaf: leaf[k], ghms.models[ghms.horizons.index(horizon)])
    actions = np.asarray(sample_policy(PolicyBank([policy]), states, key))
    true = simulate_futures(AntDynamics(), policy, states, actions, horizon, seed=seed + k)
    drawn = np.asarray(sample_model(model, states, actions, key))
    axes = np.stack([HEADINGS[k], HEADINGS[(k + 1) % 4]], axis=1)
    moved = {"true": (true - states)[:, :2] @ axes, "model": (drawn - states)[:, :2] @ axes}
    scale = moved["true"].std(axis=0)
    clouds = [part.reshape(num_pairs, -1, 2) / scale for part in moved.values()]
    energy = np.mean([energy_distance(*pair) for pair in zip(*clouds, strict=True)])
    return {
        "policy": policy.name,
        "energy": float(energy),
        **{name: _displacement(part, num_pairs) for name, part in moved.items()},
    }


def _displacement(moved: np.ndarray, num_pairs: int) -> dict[str, float]:
    within = np.sqrt(moved.reshape(num_pairs, -1, 2).var(axis=1).mean(axis=0))
    return {
        "mean": float(moved[:, 0].mean()),
        "along": float(moved[:, 0].std()),
        "across": float(moved[:, 1].std()),
        "within_along": float(within[0]),
        "within_across": float(within[1]),
    }


def ratios(found: dict[str, Any]) -> dict[str, dict[str, float]]:
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


def calibrate(fit: FitConfig, num_pairs: int = 64, num_futures: int = 64) -> dict[str, dict[str, float]]:
    """The ratios of the models of a config."""
    return ratios(calibration(models(fit), num_pairs, num_futures))


def announce(found: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Prints the table of these ratios, aside of the results; gives them back."""
    Console(stderr=True).print(calibration_table(found))
    return found


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
