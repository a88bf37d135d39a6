"""Every kind of geometric horizon model, each with a world whose truth is known, for the same laws.

Tabular models live on a ring, the others in a linear-Gaussian system of two dimensions. Networks are tiny and
fits are short. Whatever is trained is trained once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ggpi
import ggpi.ghm
import ggpi.ghm.spline_flow
import ggpi.ghm.vae
from ggpi.diagnosis.distances import energy_distance
from ggpi.envs import GymVectorEnv
from ggpi.ghm import ExactGHM
from ggpi.ghm.exact import Simulator
from ggpi.ghm.one_step import unroll
from ggpi.policies.linear import linear_policy
from linear_gaussian import LinearGaussian
from ring import Ring

BETA = 0.8
KEY = jax.random.key(0)

RING = Ring(9, 0.1)
WALK = ggpi.TabularPolicy(np.tile([0.2, 0.8], (9, 1)))
EXACT = ExactGHM(RING.mdp, WALK, BETA)

SYSTEM = LinearGaussian(
    [[0.8, 0.3], [-0.2, 0.9]], [[0.0], [0.5]], 0.01 * np.eye(2), [[-0.2, -0.3]], 0.2, 0.3, start_std=3.0
)
FEEDBACK = linear_policy(SYSTEM.gain, SYSTEM.bias, SYSTEM.action_std, low=-np.inf, high=np.inf)


@dataclass(frozen=True, eq=False)
class Specimen:
    """A kind of model, at a few pairs (x, a)."""

    name: str
    state: np.ndarray
    action: np.ndarray
    truth: Callable[[int], np.ndarray]
    """n true futures at each pair, as vectors [pairs, n, D]."""
    trained: Callable[[str], tuple[Any, Any]] | None = None
    """The model before and after training with a loss, "cetd" or "cemc", or what takes its place; None: given."""
    given: Any = None
    observe: Callable[[Any], Any] = np.asarray
    """Vectors of what the model samples."""

    @property
    def model(self) -> Any:
        return self.given if self.trained is None else self.trained("cetd")[1]

    def distance(self, model: Any, n: int = 1000) -> float:
        """Energy distance to the truth, in units of its spread, mean over the pairs."""
        keys = jax.random.split(KEY, (len(self.state), n))
        drawn = self.observe(_clouds(model, self.state, self.action, keys))
        true = self.truth(n)
        scale = true.std(axis=(0, 1))
        return float(
            np.mean([energy_distance(x / scale, y / scale) for x, y in zip(drawn, true, strict=True)])
        )


@eqx.filter_jit
def _clouds(model, states, actions, keys):
    at_pair = jax.vmap(lambda x, a, key: model.sample(x, a, key=key), in_axes=(None, None, 0))
    return jax.vmap(at_pair)(states, actions, keys)


class Unrolled(eqx.Module):
    """A one-step model that is asked for the state after a geometric time."""

    model: Any
    policy: Any
    beta: float

    def sample(self, state, action, *, key):
        return unroll(self.model, self.policy, self.beta, state, action, key=key)


@cache
def transitions() -> ggpi.Transitions:
    return ggpi.collect(GymVectorEnv(SYSTEM, 64, 60), [FEEDBACK], 64 * 120, seed=0)


@cache
def fitted(model: Any, loss: str) -> dict[float, tuple[Any, Any]]:
    """Models of each horizon, before and after training; with CETD the one-step model too."""
    start = []

    def keep(report):
        if report.step == 0:
            start.append(jax.tree.map(jnp.array, report.models))

    alpha = (1.0,) if loss == "cetd" else ()
    ghms = ggpi.fit(
        [FEEDBACK],
        transitions(),
        gamma=BETA,
        alpha=alpha,
        key=KEY,
        model=model,
        loss=loss,
        learning_rate=5e-3,
        steps=500,
        callbacks=[keep],
    )
    return {
        horizon: tuple(
            jax.tree.map(lambda leaf, i=i: leaf[i], stack) for stack, i in ((start[0], place), (models, 0))
        )
        for place, (horizon, models) in enumerate(zip(ghms.horizons, ghms.models, strict=True))
    }


@cache
def tabular(loss: str) -> tuple[Any, Any]:
    learn = {"cetd": ggpi.ghm.cetd, "cemc": ggpi.ghm.cemc}[loss]
    shape = (RING.size, 2, RING.size)
    return ggpi.ghm.TabularGHM(jnp.zeros(shape)), learn(RING.mdp, WALK, BETA, num_steps=20_000, key=KEY)


def on_ring(name: str, **given: Any) -> Specimen:
    state, action = np.array([0, 2, 5]), np.array([0, 1, 1])

    def truth(n):
        rng, mu = np.random.default_rng(1), EXACT.dense()
        return np.stack(
            [RING.observe(rng.choice(RING.size, n, p=mu[x, a])) for x, a in zip(state, action, strict=True)]
        )

    return Specimen(name, state, action, truth, observe=RING.observe, **given)


def in_plane(name: str, **given: Any) -> Specimen:
    rows = np.random.default_rng(2).choice(len(transitions()), 3, replace=False)
    state, action = transitions().state[rows], transitions().action[rows]

    def truth(n):
        rng = np.random.default_rng(3)
        return np.stack(
            [SYSTEM.sample_future(x, a, BETA, n, rng) for x, a in zip(state, action, strict=True)]
        )

    return Specimen(name, state, action, truth, **given)


def unrolled(loss: str) -> tuple[Any, Any]:
    start, end = fitted(VAE, "cetd")[0.0]
    return Unrolled(start, FEEDBACK, BETA), Unrolled(end, FEEDBACK, BETA)


def matched(config: Any, loss: str, *, names: dict[str, str]) -> tuple[Any, Any]:
    """A model that follows a path, by its own loss in place of "cetd" or "cemc"."""
    return fitted(config, names[loss])[BETA]


def timed(loss: str) -> tuple[Any, Any]:
    """One network for all horizons: what was trained at γ is the first of the models before training."""
    return fitted(TIMED, loss.replace("ce", "energy-"))[BETA]


VAE, FLOW = ggpi.ghm.vae.VAEConfig(width=32, depth=2), ggpi.ghm.spline_flow.FlowConfig(hidden=32)
MATCHING, DIFFUSION = (
    ggpi.FlowMatchingConfig(width=32, depth=2),
    ggpi.DiffusionConfig(width=32, depth=2),
)
OWN = {"cetd": "td2-cfm", "cemc": "mc-cfm"}
TIMED = ggpi.ghm.TimedConfig(width=32, depth=1)
ZOO = [
    on_ring("exact table", given=EXACT.sampler),
    on_ring("exact simulator", given=Simulator.of(EXACT)),
    on_ring("learned table", trained=tabular),
    in_plane("VAE", trained=lambda loss: fitted(VAE, loss)[BETA]),
    in_plane("flow", trained=lambda loss: fitted(FLOW, loss)[BETA]),
    in_plane("flow matching", trained=lambda loss: matched(MATCHING, loss, names=OWN)),
    in_plane("diffusion", trained=lambda loss: matched(DIFFUSION, loss, names={"cetd": "td2-dd"})),
    in_plane("timed", trained=lambda loss: timed(loss)),
    in_plane("one-step, unrolled", trained=unrolled),
]
LEARNED = [specimen for specimen in ZOO if specimen.trained]
