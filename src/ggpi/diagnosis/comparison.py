"""What is gained: agents, the base policies and random switching on true episodes, for one reward.

All start from the same resets, and all are paid the given reward of every true step, whatever the environment pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.forking import check_process
from ggpi._jax.jit import jit
from ggpi.agent.agent import GGPIAgent
from ggpi.data.spaces import state_reader
from ggpi.evaluation.rewards import OnHost, Table, checked_reward, rewards_at
from ggpi.ghm.base import GHMs
from ggpi.policies import PolicyBank
from ggpi.progress import progress
from ggpi.rewards import Reward, as_reward
from ggpi.types import Key, whole

DEPTHS = (1, 2, 3)
"""Depths that are compared when no agents are given."""


@dataclass(frozen=True, eq=False)
class Score:
    """What one way of acting was paid, episode by episode."""

    name: str
    kind: str
    """"policy", "switching" or "agent"."""
    total: np.ndarray
    """[episodes]: the sum of the rewards."""
    discounted: np.ndarray
    """[episodes]: the sum discounted by γ, which agents maximise."""
    steps: np.ndarray
    terminated: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.total.mean())

    def interval(self, level: float = 0.95, resamples: int = 10_000) -> tuple[float, float]:
        """A percentile bootstrap interval of the mean; the same numbers give the same interval."""
        drawn = np.random.default_rng(0).choice(self.total, (resamples, len(self.total))).mean(axis=1)
        low, high = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)])
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores in the order: base policies, random switching, agents."""

    scores: tuple[Score, ...]
    gamma: float
    max_steps: int
    seed: int

    def __getitem__(self, name: str) -> Score:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f"nothing is called {name!r}; there are {', '.join(s.name for s in self.scores)}")

    def __str__(self) -> str:
        width = max(len(score.name) for score in self.scores)
        lines = [f"{'':{width}}  reward per episode [95% interval]  steps"]
        for score in self.scores:
            low, high = score.interval()
            said = f"{score.mean:.4g} [{low:.4g}, {high:.4g}]"
            lines.append(f"{score.name:{width}}  {said:34} {score.steps.mean():.0f}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """All numbers, as JSON has them."""
        rows = [
            {
                "name": score.name,
                "kind": score.kind,
                "mean": score.mean,
                "interval": list(score.interval()),
                **{
                    name: getattr(score, name).tolist()
                    for name in ("total", "discounted", "steps", "terminated")
                },
            }
            for score in self.scores
        ]
        return {"gamma": self.gamma, "max_steps": self.max_steps, "seed": self.seed, "scores": rows}


def compare(
    env: Any,
    ghms: GHMs,
    reward: Reward | Any,
    *,
    agents: Mapping[str, Any] | None = None,
    episodes: int = 20,
    max_steps: int = 1000,
    num_samples: int = 100,
    terminal: Callable[[Any], Any] | None = None,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Comparison:
    """The reward on true episodes of each base policy, of random switching among them, and of agents.

    `env` is the id of a Gymnasium environment or a function that makes one. `agents` maps names to agents, or to
    anything else with `act(states, key=)`; by default they are GGPI at depths 1 (which is GPI), 2 and 3. Random
    switching draws a policy again with probability α in each step. Episode i of all of them starts from the reset
    with seed `seed` + i, and is cut after `max_steps`.
    """
    check_process()
    episodes, max_steps = whole(episodes, "episodes"), whole(max_steps, "max_steps")
    reward = as_reward(reward)
    if agents is None:
        depths = DEPTHS if ghms.alphas else DEPTHS[:1]
        settings = {"num_samples": num_samples, "terminal": terminal}
        agents = {
            f"GGPI depth {m}" if m > 1 else "GPI": GGPIAgent(ghms, reward, depth=m, **settings)
            for m in depths
        }
    bank, names = PolicyBank(tuple(ghms.policies)), _distinct(ghms.names)
    ways: list[tuple[str, str, Any]] = [(name, "policy", _Base(bank, k)) for k, name in enumerate(names)]
    ways.append(("random switching", "switching", _Switching(bank, max(ghms.alphas, default=1.0), episodes)))
    ways += [(name, "agent", agent) for name, agent in agents.items()]
    envs = _Episodes(env, episodes, keys)
    scores = []
    try:
        with progress(len(ways) * max_steps, "comparing") as advance:
            for i, (name, kind, way) in enumerate(ways):
                told = lambda t, i=i, name=name: advance(i * max_steps + t, name)  # noqa: E731
                numbers = envs.play(way, reward, ghms.gamma, max_steps, seed, told)
                scores.append(Score(name, kind, *numbers))
    finally:
        envs.close()
    return Comparison(tuple(scores), ghms.gamma, max_steps, seed)


class _Base:
    """One base policy."""

    def __init__(self, bank: PolicyBank, index: int):
        self.bank, self.index = bank, index

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        return np.asarray(_sample(self.bank, np.full(len(states), self.index), states, key))


class _Switching:
    """Base policies drawn again with probability α in each step, each episode for itself."""

    def __init__(self, bank: PolicyBank, alpha: float, episodes: int):
        self.bank, self.alpha, self.rng = bank, alpha, np.random.default_rng(0)
        self.index = self.rng.integers(len(bank), size=episodes)

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        again = self.rng.random(len(states)) < self.alpha
        self.index = np.where(again, self.rng.integers(len(self.bank), size=len(states)), self.index)
        return np.asarray(_sample(self.bank, self.index, states, key))


@jit
def _sample(bank: PolicyBank, index: Any, states: Any, key: Key) -> Any:
    return bank.sample(index, states, key=key)


class _Episodes:
    """Copies of an environment that run side by side, so that each way of acting is asked once per step."""

    def __init__(self, env: Any, count: int, keys: Sequence[str] | None):
        if not (isinstance(env, str) or callable(env)):
            raise TypeError(
                f"compare takes the id of an environment or a function that makes one, got {type(env).__name__}"
            )
        self.envs: list[Any] = [gymnasium.make(env) if isinstance(env, str) else env() for _ in range(count)]
        self.read = state_reader(self.envs[0].observation_space, keys)

    def play(
        self, way, reward: Reward, gamma: float, max_steps: int, seed: int, told
    ) -> tuple[np.ndarray, ...]:
        """Sums of rewards, discounted ones, steps, and whether the world ended, per episode."""
        states = np.stack([self.read(env.reset(seed=seed + i)[0]) for i, env in enumerate(self.envs)])
        live, (terminated, truncated) = np.ones(len(states), bool), np.zeros((2, len(states)), bool)
        steps, (total, discounted) = np.zeros(len(states), int), np.zeros((2, len(states)))
        following, key, values = states.copy(), jax.random.key(seed), None
        for t in range(max_steps):
            actions = np.asarray(way.act(states, key=jax.random.fold_in(key, t)))
            for i in np.flatnonzero(live):
                observed, _, terminated[i], truncated[i], _ = self.envs[i].step(
                    executed(actions[i], self.envs[i])
                )
                following[i] = self.read(observed)
            values = values or checked_values(reward, states, actions)
            paid = np.where(live, paid_for(reward.form, values, states, actions, following), 0.0)
            total, discounted, steps = total + paid, discounted + gamma**t * paid, steps + live
            states, live = following.copy(), live & ~(terminated | truncated)
            told(t + 1)
            if not live.any():
                break
        return total, discounted, steps, terminated

    def close(self) -> None:
        for env in self.envs:
            env.close()


def executed(action: Any, env: gymnasium.Env) -> Any:
    """An action as the environment takes it: within its bounds, of its type."""
    space: Any = env.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(action)
    return np.clip(action, space.low, space.high).astype(space.dtype)


def checked_values(reward: Reward, states: np.ndarray, actions: np.ndarray) -> Any:
    """What pays true steps, after a try on the shapes of a state and an action."""
    shapes = [jax.ShapeDtypeStruct(part.shape[1:], part.dtype) for part in (states, actions)]
    shape = () if callable(reward.values) else np.shape(reward.values)
    values = checked_reward(reward, shapes[0], shapes[1], (shape[0], shape[-1]) if shape else None).values
    return values if callable(values) else Table(jnp.asarray(values, jnp.float32))


def paid_for(
    form: str, values: Any, states: np.ndarray, actions: np.ndarray, following: np.ndarray
) -> np.ndarray:
    """The rewards of true steps [B]."""
    given = {"state": (states,), "state_action": (states, actions), "arrival": (following,)}[form]
    pay = rewards_at if isinstance(values, OnHost) else _pay
    return np.asarray(pay(values, *(part[None, :, None] for part in given)))[0, :, 0]


_pay = jit(rewards_at)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that say which is which, also for policies that are called alike."""
    return [f"{name} ({i})" if list(names).count(name) > 1 else name for i, name in enumerate(names)]
