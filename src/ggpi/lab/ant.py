"""What the ant's experiments share: how well models are calibrated, agents, and episodes.

Seeds of worlds lie far apart: base policies were trained below 2·10⁹, models learn from worlds at `DATA`, settings
were chosen on worlds at `CHOOSING`, and what is reported was measured on worlds at `REPORTED`, never seen before.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ggpi.agents import GGPIAgent
from ggpi.collection import collect
from ggpi.distances import energy_distance
from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.evaluation.payment import payment
from ggpi.evaluation.segments import segments_of
from ggpi.evaluation.tree import Block, build_tree, draw, worth
from ggpi.futures import simulate_futures
from ggpi.ghm.base import GHMs
from ggpi.policies.bank import PolicyBank
from ggpi.pretrain.walking import HEADINGS
from ggpi.rewards import Reward, targets
from ggpi.shipped import pretrained
from ggpi.switching import compositions

GAMMA, ALPHA = 0.9, 1 / 9
"""The paper's horizons: μ_γ and μ_β with β = γ(1−α) = 0.8."""
RADIUS = 0.3
NAMES = ("right", "up", "left", "down")
MAX_STEPS = 150
DATA, CHOOSING, REPORTED = 3_000_000_000, 3_500_000_000, 4_000_000_000

Decide = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]
"""(states [b, 35], targets [b, 2], key) ↦ actions [b, 8]."""


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
    actions = np.asarray(_sample_policy(PolicyBank([policy]), states, key))
    true = simulate_futures(AntDynamics(), policy, states, actions, horizon, seed=seed + k)
    drawn = np.asarray(_sample_model(model, states, actions, key))
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


@eqx.filter_jit
def _sample_policy(bank: PolicyBank, states: Any, key: Any) -> Any:
    return bank.sample_each(states[None], key=key)[0]


@eqx.filter_jit
def _sample_model(model: Any, states: Any, actions: Any, key: Any) -> Any:
    keys = jax.random.split(key, len(states))
    return jax.vmap(lambda x, a, k: model.sample(x, a, key=k))(states, actions, keys)


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
        rows = np.resize(active, _bucket(len(active)))
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


def _bucket(count: int) -> int:
    """Few sizes, so that few programs are compiled."""
    return next(size for size in (4, 8, 16, 32, 64, 128, 256, 512, count) if size >= count)


def budget(samples: int, depth: int) -> int:
    """Samples for each GSP, so that all depths draw as many chains as depth 2 with `samples`: 4n, n, n/4.

    Paper: Fig 5
    """
    return max(1, round(samples * 4.0 ** (2 - depth)))


def planner(ghms: GHMs, depth: int, num_samples: int, radius: float = RADIUS, **options: Any) -> Decide:
    """GGPI at a depth; 1 is GPI."""
    agent = GGPIAgent(
        ghms, targets(np.zeros((1, 2)), radius), depth=depth, num_samples=num_samples, **options
    )

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        return agent.with_reward(targets(goals, radius)).act(states, key=key)

    return decide


def alone(policy: int) -> Decide:
    """One base policy all the time."""
    bank = PolicyBank(pretrained("ant-policies"))
    act = eqx.filter_jit(lambda states, key: bank.sample(np.full(len(states), policy), states, key=key))
    return lambda states, goals, key: np.asarray(act(states, key))


def random_switching(every: int = 40) -> Decide:
    """A policy drawn at random for each of Uniform(1, every) steps, whatever the target."""
    bank, act = PolicyBank(pretrained("ant-policies")), eqx.filter_jit(PolicyBank.sample)
    turns: dict[bytes, tuple[int, int]] = {}

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        ids = [goal.tobytes() for goal in goals]
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        for name in dict.fromkeys(ids):
            policy, left = turns.get(name, (0, 0))
            turns[name] = (policy, left - 1) if left > 0 else _turn(rng, len(bank), every)
        return np.asarray(act(bank, np.array([turns[name][0] for name in ids]), states, key=key))

    return decide


def _turn(rng: np.random.Generator, num_policies: int, every: int) -> tuple[int, int]:
    """A policy and how many more steps it acts."""
    return int(rng.integers(num_policies)), int(rng.integers(every))


class Timed:
    """An agent that counts its decisions and the time that they take."""

    def __init__(self, decide: Decide):
        self.decide, self.seconds, self.decisions = decide, 0.0, 0

    def __call__(self, states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        begun = time.perf_counter()
        actions = self.decide(states, goals, key)
        self.seconds += time.perf_counter() - begun
        self.decisions += len(states)
        return actions

    @property
    def seconds_per_decision(self) -> float:
        return self.seconds / max(self.decisions, 1)


class Simulated:
    """The simulator in the models' place: `move` draws true futures."""

    def __init__(self, policies: Sequence[Any]):
        self.policies, self.dynamics = policies, AntDynamics()
        self.banks = {(k,): PolicyBank([policy]) for k, policy in enumerate(policies)}
        self.count = 0

    def act(self, block: Block, x: Any, *, key: Any) -> Any:
        parts = [
            _sample_policy(self.banks[(k,)], np.asarray(x[row]), jax.random.fold_in(key, row))
            for row, k in enumerate(block.policies)
        ]
        return np.stack([np.asarray(part) for part in parts])

    def move(self, block: Block, x: Any, action: Any, *, key: Any) -> Any:
        seeds = np.asarray(jax.random.bits(key, (len(block.policies),), np.uint32))
        ends = []
        for row, k in enumerate(block.policies):
            given = np.asarray(x[row]), np.asarray(action[row])
            ends.append(
                simulate_futures(self.dynamics, self.policies[k], *given, block.horizon, seed=int(seeds[row]))
            )
        self.count += ends[0].shape[0] * len(ends)
        return np.stack(ends)


def oracle(depth: int, num_samples: int, radius: float = RADIUS) -> Decide:
    """The same planner with true simulator samples in the place of models."""
    policies = pretrained("ant-policies")
    ghms = GHMs(tuple(policies), GAMMA, (ALPHA,), {})
    gsps = compositions(len(policies), depth, ALPHA)
    tree, _ = build_tree([segments_of(gsp, GAMMA) for gsp in gsps], ghms, "arrival")
    world, bank = Simulated(policies), PolicyBank(policies)
    heads, act = np.array([gsp.head for gsp in gsps]), eqx.filter_jit(PolicyBank.sample)

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        draw_key, tie_key, act_key = jax.random.split(key, 3)
        drawn = draw(tree, world, states, None, num_samples, form="arrival", key=draw_key)
        reward: Reward = targets(goals, radius)
        pay = payment(reward.values, "arrival", None, GAMMA)
        value = np.asarray(worth(tree, pay, states, drawn, form="arrival").mean(axis=-1))
        lots = np.asarray(jax.random.uniform(tie_key, value.shape))
        best = np.where(value == value.max(axis=0), lots, -1.0).argmax(axis=0)
        return np.asarray(act(bank, heads[best], states, key=act_key))

    return decide
