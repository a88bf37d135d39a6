"""How close the maze's models are to simulation."""

import jax
import numpy as np

from ggpi.diagnosis.distances import mean_energy, share_beyond
from ggpi.diagnosis.measures import moments
from ggpi.diagnosis.samples import draw_at
from ggpi.diagnosis.truth import on_policy_truth, random_rows
from ggpi.envs import GymVectorEnv
from ggpi.envs.maze import PointMaze
from ggpi.ghm.base import GHMs
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.tasks import CALIBRATED, EPISODE, HEADINGS, SWITCH_EVERY
from ggpi.rollout.collection import collect

FAR = 0.5
"""A sample is far from the truth when no simulated future is within this distance."""


def calibration(
    maze: PointMaze, ghms: GHMs, num_pairs: int, num_futures: int, seed: int = CALIBRATED
) -> list[Metrics]:
    """For each horizon and policy: samples of models and simulated futures, from states that switching visits."""
    env = GymVectorEnv(maze, 64, EPISODE)
    seen = collect(env, ghms.policies, 100 * 64, switch_every=SWITCH_EVERY, seed=seed)
    states = random_rows(seen, num_pairs, seed).state
    return [
        _calibration_of(maze, ghms, alpha, k, states, num_futures, seed)
        for alpha in (None, *ghms.alphas)
        for k in range(len(ghms.policies))
    ]


def _calibration_of(
    maze: PointMaze, ghms: GHMs, alpha: float | None, k: int, states: np.ndarray, num_futures: int, seed: int
) -> Metrics:
    policy, horizon, key = ghms.policies[k], ghms.horizon(alpha), jax.random.key(seed + k)
    seeds = [seed + k, seed + k + 100]
    truth = on_policy_truth(maze, policy, states, horizon, num_futures, seeds=seeds, key=key)
    drawn = draw_at(ghms.segment(k, alpha), truth, key=key)
    true, again, ours = (part[..., :2] for part in (truth.future, truth.again, drawn) if part is not None)
    along = [moments((part - states[:, None, :2]) @ HEADINGS[k, :, None]) for part in (true, ours)]
    return {
        "policy": policy.name,
        "horizon": horizon,
        "energy": mean_energy(true, ours),
        "energy_floor": mean_energy(true, again),
        "wall": float(1 - maze.possible(drawn).mean()),
        "far": share_beyond(true, ours, FAR),
        "far_floor": share_beyond(true, again, FAR),
        "mean": float(along[1]["mean"][0] / along[0]["mean"][0]),
        "spread": float(along[1]["spread"][0] / along[0]["spread"][0]),
    }
