"""Agents, base policies and random switching on true episodes, for one reward.

All start from the same resets, and all get the given reward in every true step, whatever the environment pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi._jax.forking import check_process
from ggpi._jax.jit import jit
from ggpi.agent.agent import GGPIAgent
from ggpi.data.spaces import state_reader
from ggpi.diagnosis.report import names
from ggpi.envs.making import make, name_of
from ggpi.evaluation.rewards import OnHost, checked_payment, pay_all
from ggpi.ghm.base import GHMs
from ggpi.policies import PolicyBank
from ggpi.policies.checks import check_policies
from ggpi.progress import progress
from ggpi.rewards import Reward, as_reward
from ggpi.rollout.acting import act
from ggpi.rollout.episodes import Singles, follow
from ggpi.types import Key, Policy, whole

DEPTHS = (1, 2, 3)
"""Depths of the agents that are compared by default."""


@runtime_checkable
class Actor(Protocol):
    """Anything that chooses actions for a batch of states."""

    def act(self, states: np.ndarray, *, key: Key) -> Any: ...


@dataclass(frozen=True, eq=False)
class Score:
    """Rewards of one policy or agent, episode by episode."""

    name: str
    kind: str
    """"policy", "switching" or "agent"."""
    total: np.ndarray
    """[episodes]: the sum of the rewards."""
    discounted: np.ndarray
    """[episodes]: the sum discounted by γ, which agents maximise."""
    steps: np.ndarray
    terminated: np.ndarray
    """[episodes]: whether the environment terminated the episode."""

    @property
    def mean(self) -> float:
        return float(self.total.mean())

    def interval(self, level: float = 0.95, resamples: int = 10_000) -> tuple[float, float]:
        """A percentile bootstrap interval of the mean; equal scores have equal intervals."""
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
        raise KeyError(f"there is no score of {name!r}; there are {', '.join(s.name for s in self.scores)}")

    def __str__(self) -> str:
        width = max(len(score.name) for score in self.scores)
        lines = [f"{'':{width}}  reward per episode [95% interval]  steps"]
        for score in self.scores:
            low, high = score.interval()
            mean = f"{score.mean:.4g} [{low:.4g}, {high:.4g}]"
            lines.append(f"{score.name:{width}}  {mean:34} {score.steps.mean():.0f}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """All scores, ready for JSON."""
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
    env: str | Callable[[], gymnasium.Env],
    ghms: GHMs,
    reward: Reward | ArrayLike,
    *,
    agents: Mapping[str, Actor] | None = None,
    episodes: int = 20,
    max_steps: int = 1000,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Comparison:
    """The reward on true episodes of each base policy, of random switching among them, and of agents.

    Random switching draws another policy with probability α in each step. Episode i of all of them starts from the
    reset with seed `seed` + i.

    Args:
        env: the id of a Gymnasium environment or a function that makes one.
        ghms: models of the base policies; their γ discounts.
        reward: the reward of every true step; what the environment itself pays is ignored.
        agents: names and agents, or anything else with `act(states, key=)`; by default `planners(ghms, reward)`.
        episodes: the number of episodes of each.
        max_steps: where episodes are cut.
        keys: of dictionary observations, the parts that make the state.
    """
    check_process()
    episodes, max_steps = whole(episodes, "episodes"), whole(max_steps, "max_steps")
    reward = as_reward(reward)
    agents = planners(ghms, reward) if agents is None else agents
    _check_agents(agents)
    bank, labels = PolicyBank(tuple(ghms.policies)), names(ghms.policies)
    actors: list[tuple[str, str, Actor]] = [(name, "policy", _Base(bank, k)) for k, name in enumerate(labels)]
    switching = _Switching(bank, max(ghms.alphas, default=1.0), episodes, seed)
    actors.append(("random switching", "switching", switching))
    actors += [(name, "agent", agent) for name, agent in agents.items()]
    envs, scores = _Episodes(env, episodes, keys), []
    envs.check(ghms.policies)
    try:
        with progress(len(actors) * max_steps, "comparing") as advance:
            for i, (name, kind, actor) in enumerate(actors):
                show = lambda t, i=i, name=name: advance(i * max_steps + t, name)  # noqa: E731
                numbers = envs.play(actor, reward, ghms.gamma, max_steps, seed, show)
                scores.append(Score(name, kind, *numbers))
    finally:
        envs.close()
    return Comparison(tuple(scores), ghms.gamma, max_steps, seed)


def planners(ghms: GHMs, reward: Reward, **settings: Any) -> dict[str, Actor]:
    """GGPI agents at depths 1 (which is GPI), 2 and 3; `settings` are those of `GGPIAgent`."""
    depths = DEPTHS if ghms.alphas else DEPTHS[:1]
    return {
        f"GGPI depth {m}" if m > 1 else "GPI": GGPIAgent(ghms, reward, depth=m, **settings) for m in depths
    }


def _check_agents(agents: Mapping[str, Actor]) -> None:
    if not isinstance(agents, Mapping):
        raise TypeError(f"agents is a dict, such as {{'depth 2': agent}}, got a {type(agents).__name__}")
    for name, agent in agents.items():
        if not isinstance(agent, Actor):
            raise TypeError(
                f"agent {name!r} is a {type(agent).__name__}, expected a GGPIAgent or another object with "
                "act(states, *, key)"
            )


class _Base:
    """One base policy."""

    def __init__(self, bank: PolicyBank, index: int):
        self.bank, self.index = bank, index

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        return np.asarray(act(self.bank, np.int32(self.index), states, key))


class _Switching:
    """Another base policy is drawn with probability α in each step, in each episode by itself."""

    def __init__(self, bank: PolicyBank, alpha: float, episodes: int, seed: int):
        self.bank, self.alpha, self.rng = bank, alpha, np.random.default_rng(seed)
        self.index = self.rng.integers(len(bank), size=episodes)

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        switches = self.rng.random(len(states)) < self.alpha
        self.index = np.where(switches, self.rng.integers(len(self.bank), size=len(states)), self.index)
        return np.asarray(act(self.bank, self.index, states, key))


class _Episodes:
    """Copies of an environment that run side by side, so that each actor chooses all actions of a step in one call."""

    def __init__(self, env: str | Callable[[], gymnasium.Env], count: int, keys: Sequence[str] | None):
        if not (isinstance(env, str) or callable(env)):
            raise TypeError(
                "compare takes the id of an environment or a function that makes one, such as "
                f"lambda: gymnasium.make('Pendulum-v1'), got {type(env).__name__}"
            )
        self.envs = [make(env) if isinstance(env, str) else env() for _ in range(count)]
        self.read = state_reader(self.envs[0].observation_space, keys)

    def check(self, policies: Sequence[Policy]) -> None:
        """Raises if the policies do not match the spaces of this environment."""
        env = self.envs[0]
        example = self.read(env.observation_space.sample())
        check_policies(policies, example[None], env.action_space, f"environment {name_of(env)}")

    def play(
        self,
        agent: Actor,
        reward: Reward,
        gamma: float,
        max_steps: int,
        seed: int,
        advance: Callable[[int], None],
    ) -> tuple[np.ndarray, ...]:
        """Sums of rewards, discounted sums, steps, and whether the environment terminated, per episode."""
        copies = Singles.reset(self.envs, self.read, range(seed, seed + len(self.envs)))
        total, discounted = np.zeros((2, len(self.envs)))
        steps, done = np.zeros(len(self.envs), int), np.zeros(len(self.envs), bool)
        key, values = jax.random.key(seed), None

        def choose(t: int, states: np.ndarray) -> np.ndarray:
            return agent.act(states, key=jax.random.fold_in(key, t))

        for t, step in enumerate(follow(copies, choose, max_steps)):
            values = values or checked_values(reward, step.state, step.action)
            earned = paid_for(reward.form, values, step.state, step.action, step.next_state)
            earned = np.where(step.live, earned, 0.0)
            total, discounted = total + earned, discounted + gamma**t * earned
            steps, done = steps + step.live, done | step.is_done
            advance(t + 1)
        return total, discounted, steps, done

    def close(self) -> None:
        for env in self.envs:
            env.close()


def checked_values(reward: Reward, states: np.ndarray, actions: np.ndarray) -> Any:
    """The reward's values for `paid_for`, after a check on the shapes of a state and an action."""
    shapes = [jax.ShapeDtypeStruct(part.shape[1:], part.dtype) for part in (states, actions)]
    shape = () if callable(reward.values) else np.shape(reward.values)
    return checked_payment(reward, shapes[0], shapes[1], (shape[0], shape[-1]) if shape else None)


def paid_for(
    form: str, values: Any, states: np.ndarray, actions: np.ndarray, next_states: np.ndarray
) -> np.ndarray:
    """The rewards of true steps [B]."""
    parts = {"state": (states,), "state_action": (states, actions), "arrival": (next_states,)}[form]
    pay = pay_all if isinstance(values, OnHost) else _pay
    return np.asarray(pay(values, *(part[None, :, None] for part in parts)))[0, :, 0]


_pay = jit(pay_all)
