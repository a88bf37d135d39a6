"""What the ant's experiments share: how well models are calibrated, agents, and episodes.

Seeds of worlds lie far apart: base policies were trained below 2·10⁹, models learn from worlds at `DATA`, settings
were chosen on worlds at `CHOOSING`, and what is reported was measured on worlds at `REPORTED`, never seen before.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ggpi.collection import collect
from ggpi.distances import energy_distance
from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.futures import simulate_futures
from ggpi.ghm.base import GHMs
from ggpi.lab import planners
from ggpi.lab.planners import Decide as Decide
from ggpi.lab.planners import Timed as Timed
from ggpi.lab.planners import bucket, sample_model, sample_policy
from ggpi.lab.planners import budget as budget
from ggpi.policies.bank import PolicyBank
from ggpi.pretrain.walking import HEADINGS
from ggpi.shipped import pretrained

GAMMA, ALPHA = 0.9, 1 / 9
"""The paper's horizons: μ_γ and μ_β with β = γ(1−α) = 0.8."""
RADIUS = 0.3
NAMES = ("right", "up", "left", "down")
MAX_STEPS = 150
DATA, CHOOSING, REPORTED = 3_000_000_000, 3_500_000_000, 4_000_000_000


def calibration(
    ghms: GHMs, num_pairs: int = 64, num_futures: int = 64, seed: int = CHOOSING
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
        for horizon in ghms.models
    }


def _calibration_of(
    ghms: GHMs, horizon: float, k: int, states: np.ndarray, num_pairs: int, seed: int
) -> dict[str, Any]:
    policy, key = ghms.policies[k], jax.random.key(k)
    model = jax.tree.map(lambda leaf: leaf[k], ghms.models[horizon])
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


@dataclass(frozen=True)
class Outcome:
    """How episodes went: the step at which each target was reached (0: never, −1: the simulation diverged)."""

    steps: np.ndarray
    """[E]"""
    places: np.ndarray
    """[T + 1, E, 2], frozen once the target is reached."""
    targets: np.ndarray
    """[E, 2]"""

    @property
    def reached(self) -> np.ndarray:
        return self.steps > 0


def episodes(
    decide: Decide, num_episodes: int, seed: int, radius: float = RADIUS, distance: float | None = None
) -> Outcome:
    """Episodes side by side, each until its target is reached or for 150 steps; the same seed, the same starts.

    `distance` puts every target at this distance instead of 2 to 4, in the same direction.
    """
    env = SparseAntVector(num_episodes, radius=radius)
    states, info = env.reset(seed=seed)
    goals = np.array(info["target"])
    if distance is not None:
        apart = goals - states[:, :2]
        goals = states[:, :2] + distance * apart / np.linalg.norm(apart, axis=1, keepdims=True)
    env.targets[:] = np.inf  # reached by nobody: episodes end here, not in the environment
    steps, places = np.zeros(num_episodes, int), [states[:, :2].copy()]
    for t, key in enumerate(jax.random.split(jax.random.key(seed), MAX_STEPS), start=1):
        active = np.flatnonzero(steps == 0)
        if not len(active):
            break
        rows = np.resize(active, bucket(len(active)))
        actions = np.zeros((num_episodes, 8), np.float32)
        actions[rows] = decide(states[rows], goals[rows], key)
        following, _, diverged, truncated, info = env.step(actions)
        for i in np.flatnonzero(diverged | truncated):
            following[i] = info["final_obs"][i]
        states[active] = following[active]
        near = np.linalg.norm(states[:, :2] - goals, axis=1) <= radius
        steps[active] = np.where(near[active], t, np.where(diverged[active], -1, 0))
        places.append(states[:, :2].copy())
    return Outcome(steps, np.stack(places), goals)


def planner(ghms: GHMs, depth: int, num_samples: int, radius: float = RADIUS, **options: Any) -> Decide:
    """GGPI at a depth; 1 is GPI."""
    return planners.planner(ghms, depth, num_samples, radius, **options)


def oracle(depth: int, num_samples: int, radius: float = RADIUS) -> Decide:
    """The same planner with true simulator samples in the place of models."""
    policies = pretrained("ant-policies")
    return planners.oracle(
        AntDynamics(), policies, GAMMA, ALPHA, depth=depth, num_samples=num_samples, radius=radius
    )


def alone(policy: int) -> Decide:
    """One base policy all the time."""
    return planners.alone(pretrained("ant-policies"), policy)


def random_switching(every: int = 40) -> Decide:
    """A policy drawn at random for each of Uniform(1, every) steps, whatever the target."""
    return planners.random_switching(pretrained("ant-policies"), every)
