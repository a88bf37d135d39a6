"""The ant's four base policies: how they walk, and how they take over from each other.

The paper trains policies that walk right, up, left and down *jointly*, the direction being switched every
Uniform(40) steps, because policies that were each trained by themselves compose badly. Here the shipped
policies are tested in new episodes, as they are used: with sampled actions.

    alone             steady speed along the direction, and across it
    after a switch    share of that speed at each step after any other policy's turn of 40 steps
    random switching  which ants lie on their backs after 120 steps

The ablation trains twice with the same small budget, once with switches and once without: then a policy
only visits states that it has reached by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.pretraining import Training, preset
from ggpi.lab.pretraining.trials import Trial, one_each, one_switch, random_switches, trial
from ggpi.storage.pretrained import other_trainings, pretrained, provenance
from ggpi.types import Policy

BAR = {"speed": 0.20, "lateral": 0.05, "share": 0.8, "steps": 12, "down": 0.05}


FRESH = 2_000_000_000
"""Training uses the seeds near 10⁶ · its own seed; trials begin here."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the new episodes."""
    episodes: int = 128
    """Episodes of each policy alone, and four times as many under random switching."""
    pair_episodes: int = 100
    """Episodes of each ordered pair of policies, with one switch."""
    steps: int = 120
    """Steps of an episode."""
    settled: int = 40
    """Steps until the walk counts as steady; also the length of a turn before a switch."""
    switch_every: int = 40
    """Random switching: a turn lasts Uniform(1, this) steps."""
    ablation_rounds: int = 150
    """Training rounds of the ablation."""
    ablation_ants: int = 256
    """Ants that train in the ablation: with these defaults it has a fifteenth of the shipped policies' steps."""


PRESETS = {
    "tiny": Config(episodes=8, pair_episodes=2, steps=60, settled=30, ablation_rounds=1, ablation_ants=8),
    "cpu": Config(),
    "paper": Config(episodes=1000, pair_episodes=1000, ablation_rounds=1100, ablation_ants=512),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """The shipped policies' numbers, their training curves, and the ablation's numbers.

    Paper: App E.1
    """
    results = cells(
        {
            "shipped": partial(measure, config, pretrained("ant-policies")),
            "traces": partial(traces, config),
            "ablation/switched": partial(ablation, config, config.switch_every),
            "ablation/unswitched": partial(ablation, config, 0),
        }
    )
    about = provenance("ant-policies")
    trainings = {about["config"]["algorithm"]: about, **other_trainings("ant-policies")}
    return {
        **results,
        "bar": BAR,
        "ablation_rounds": config.ablation_rounds,
        "made_by": about["command"],
        "curves": {name: _thinned(training["curve"]) for name, training in trainings.items()},
    }


def measure(config: Config, policies: Sequence[Policy]) -> Metrics:
    """Alone, after one switch, and under random switching."""
    count, seed = len(policies), FRESH + 1_000_000 * config.seed
    alone = trial(policies, one_each(count, config.steps, config.episodes), seed)
    along, across = (part[config.settled :].reshape(-1, count, config.episodes) for part in alone.moved())
    turns = one_switch(count, config.settled, 30, config.pair_episodes)
    after, _ = trial(policies, turns, seed + 100_000).moved()
    curves = after[config.settled :].reshape(30, -1, config.pair_episodes).mean(axis=2)
    speed = along.mean()
    reached = curves >= BAR["share"] * speed
    turns = random_switches(count, config.switch_every, config.steps, 4 * config.episodes, seed)
    mixed = trial(policies, turns, seed + 200_000)
    return {
        "speed": along.mean(axis=(0, 2)),
        "lateral": np.abs(across).mean(axis=(0, 2)),
        "drift": np.abs(across.mean(axis=0)).mean(axis=1),
        "after_switch": curves.T,
        "steps_to_share": np.where(reached.any(axis=0), reached.argmax(axis=0) + 1, 31),
        "down_alone": alone.upside_down().mean(),
        "down": mixed.upside_down().mean(),
        "episodes": int(turns.shape[1]),
    }


def traces(config: Config) -> Metrics:
    """Paths from a common origin: eight of each policy alone, and eight under random switching."""
    policies, seed = pretrained("ant-policies"), FRESH + 1_000_000 * config.seed + 300_000
    turns = random_switches(len(policies), config.switch_every, config.steps, 8, seed)
    return {
        "alone": _paths(trial(policies, one_each(len(policies), config.steps, 8), seed)),
        "mixed": _paths(trial(policies, turns, seed + 100)),
        "turns": turns.T,
    }


def _paths(seen: Trial) -> Any:
    places = seen.states[:, :, :2] - seen.states[0, :, :2]
    return np.round(places.transpose(1, 0, 2).astype(float), 2)


def ablation(config: Config, switch_every: int) -> Metrics:
    """PPO with a small budget, with or without switches in training; then the same trials."""
    base = preset("cpu", "ppo")
    walk = replace(base.walk, num_ants=config.ablation_ants, switch_every=switch_every)
    training = Training(replace(base, seed=config.seed + 1, walk=walk))
    for _ in range(config.ablation_rounds):
        training.round()
    return measure(config, training.policies())


def _thinned(curve: Metrics) -> Metrics:
    every = max(1, len(curve["steps"]) // 200)
    return {name: values[::every] for name, values in curve.items()}
