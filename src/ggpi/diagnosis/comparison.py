"""Agents, base policies and random switching on true episodes, for one reward.

All start from the same resets, and all get the given reward in every true step, whatever the environment pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from ggpi._jax.forking import check_process
from ggpi.agent.agent import GGPIAgent
from ggpi.diagnosis.playing import Actor, Base, Episodes, Switching
from ggpi.diagnosis.report import names
from ggpi.ghm.base import GHMs
from ggpi.policies import PolicyBank
from ggpi.progress import progress
from ggpi.rewards import Reward, as_reward
from ggpi.types import whole

if TYPE_CHECKING:
    from ggpi.cluster import Executor

BLOCK = 10
"""Episodes that one task of an executor plays."""
Block = tuple[int | None, int, int]
"""The actor (None for all of them), the seed of the first episode, and the number of episodes."""
DEPTHS = (1, 2, 3)
"""Depths of the agents that are compared by default."""


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
    executor: Executor | None = None,
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
        seed: seeds the resets and the actions.
        executor: plays blocks of ten episodes, each as a comparison with the seed of its first episode would; a worker
            is sent the models once, and chooses the actions of a block together.
    """
    check_process()
    episodes, max_steps = whole(episodes, "episodes"), whole(max_steps, "max_steps")
    reward = as_reward(reward)
    agents = planners(ghms, reward) if agents is None else agents
    _check(env, agents)
    play = partial(_play, env, ghms, reward, agents, keys, max_steps)
    if executor is None:
        scores = play((None, seed, episodes))
    else:
        scores = _play_blocks(play, len(_actors(ghms, agents, 1, seed)), episodes, seed, executor)
    return Comparison(tuple(scores), ghms.gamma, max_steps, seed)


def _actors(
    ghms: GHMs, agents: Mapping[str, Actor], episodes: int, seed: int
) -> list[tuple[str, str, Actor]]:
    """Name, kind and actor: base policies, random switching, agents."""
    bank, labels = PolicyBank(tuple(ghms.policies)), names(ghms.policies)
    switching = Switching(bank, max(ghms.alphas, default=1.0), episodes, seed)
    return [
        *((name, "policy", Base(bank, k)) for k, name in enumerate(labels)),
        ("random switching", "switching", switching),
        *((name, "agent", agent) for name, agent in agents.items()),
    ]


def _play(
    env: str | Callable[[], gymnasium.Env],
    ghms: GHMs,
    reward: Reward,
    agents: Mapping[str, Actor],
    keys: Sequence[str] | None,
    max_steps: int,
    block: Block,
) -> list[Score]:
    """Scores of all actors, or of one, on the episodes of a block."""
    only, seed, episodes = block
    actors = _actors(ghms, agents, episodes, seed)
    actors = actors if only is None else [actors[only]]
    envs, scores = Episodes(env, episodes, keys), []
    try:
        envs.check(ghms.policies)
        with progress(len(actors) * max_steps, "comparing") as advance:
            for i, (name, kind, actor) in enumerate(actors):
                show = lambda t, i=i, name=name: advance(i * max_steps + t, name)  # noqa: E731
                numbers = envs.play(actor, reward, ghms.gamma, max_steps, seed, show)
                scores.append(Score(name, kind, *numbers))
    finally:
        envs.close()
    return scores


def _play_blocks(
    play: Callable[[Block], list[Score]], num_actors: int, episodes: int, seed: int, executor: Executor
) -> list[Score]:
    """Scores of all actors, played by an executor and put together."""
    firsts = range(0, episodes, BLOCK)
    blocks = [(i, seed + first, min(BLOCK, episodes - first)) for i in range(num_actors) for first in firsts]
    found = [score for (score,) in executor.map(play, blocks, title="comparing")]
    return [_joined(found[i : i + len(firsts)]) for i in range(0, len(found), len(firsts))]


def _joined(parts: Sequence[Score]) -> Score:
    """The score on the episodes of all parts."""
    columns = zip(*((one.total, one.discounted, one.steps, one.terminated) for one in parts), strict=True)
    return Score(parts[0].name, parts[0].kind, *map(np.concatenate, columns))


def planners(ghms: GHMs, reward: Reward, **settings: Any) -> dict[str, GGPIAgent]:
    """GGPI agents at depths 1 (which is GPI), 2 and 3; `settings` are those of `GGPIAgent`."""
    depths = DEPTHS if ghms.alphas else DEPTHS[:1]
    return {
        f"GGPI depth {m}" if m > 1 else "GPI": GGPIAgent(ghms, reward, depth=m, **settings) for m in depths
    }


def _check(env: object, agents: object) -> None:
    if not (isinstance(env, str) or callable(env)):
        raise TypeError(
            "compare takes the id of an environment or a function that makes one, such as "
            f"lambda: gymnasium.make('Pendulum-v1'), got {type(env).__name__}"
        )
    if not isinstance(agents, Mapping):
        raise TypeError(f"agents is a dict, such as {{'depth 2': agent}}, got a {type(agents).__name__}")
    for name, agent in agents.items():
        if not isinstance(agent, Actor):
            raise TypeError(
                f"agent {name!r} is a {type(agent).__name__}, expected a GGPIAgent or another object with "
                "act(states, *, key)"
            )
