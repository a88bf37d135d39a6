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

import jax
import jax.numpy as jnp
import numpy as np

from ggpi import envs
from ggpi.envs.examples import CETD_LOGITS
from ggpi.ghm import ExactGHM, cemc, cetd, polynomial_steps
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute

WORLDS = {"interior": "Fig 8: all states recur", "boundary": "Fig 9: the first state is left for ever"}


LEARNERS = {"cetd": cetd, "cemc": cemc}


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
    """Largest number of records; all of the first tenth of that many are among them."""
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


def run(config: Config, cells: Cells = compute) -> Metrics:
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


def learn(config: Config, world: str, learner: str) -> Metrics:
    """Runs one learner from every seed; keeps its errors, and the first seed's path.

    Paper: Fig 9
    """
    mdp = _mdp(world)

    def one(seed: jax.Array) -> jax.Array:
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
    learned = np.asarray(jax.vmap(one)(jnp.asarray(config.seed + np.arange(config.num_seeds))))
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
