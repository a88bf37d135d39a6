"""What one page sees: a world, agents in it, their plans, and answers to questions about them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from ggpi.progress import reported
from ggpi.rewards import as_reward
from ggpi.studio import code, explaining
from ggpi.studio.catalogue import Catalogue
from ggpi.studio.decisions import PLANNERS, Decider, Settings, random_key
from ggpi.studio.episodes import Episode
from ggpi.studio.explaining_loop import explain_loop
from ggpi.studio.latest import Latest
from ggpi.studio.outbox import Outbox
from ggpi.studio.preparing import prepared
from ggpi.studio.protocol import Change, binary_frame, text_frame
from ggpi.studio.worlds import World, about

DECIDERS = 4
"""Agents that a page keeps, each for its settings; those that were used last."""


class Stage:
    """Agents in a world; every method tells the page what it changed."""

    def __init__(self, catalogue: Catalogue, outbox: Outbox):
        self.catalogue, self.outbox = catalogue, outbox
        self.world: World | None = None
        self.formula, self.settings, self.second = "", Settings(2), -1
        self.speed, self.repeat, self.is_playing = 1.0, False, False
        self.episodes: list[Episode] = []
        self.seed = 0
        self.placed: tuple[float, float] | None = None
        """Where the page has put the agents in this episode."""
        self.tally: list[dict[str, int]] = []
        self.deciders = Latest[Settings, Decider](DECIDERS)
        self.is_stale, self.due = False, 0.0

    @property
    def is_busy(self) -> bool:
        """There is something to plan, now or when it is time for the next step."""
        return self.is_stale or (self.is_playing and bool(self.episodes))

    def say(self, kind: str, **fields: Any) -> None:
        """A message to the page."""
        self.outbox.put(text_frame(kind, **fields), "status" if kind == "status" else None)

    def complain(self, text: str) -> None:
        """After a message that was wrong: the agents stop, and plans that are out of date are still made."""
        self.is_playing = False
        self.say("error", text=text)
        self.say("status", text="")

    def stop(self, text: str) -> None:
        """After plans that failed, which would fail again."""
        self.is_stale = False
        self.complain(text)

    def open(self, name: str) -> None:
        """Shows a world with its own first settings."""
        self.say("status", text=f"Opening {name[:40]}")
        world = self.catalogue.open(name)
        self.world, self.formula = world, world.formula
        self.settings = Settings(world.depth, samples=world.samples)
        self.second = -1
        self.deciders, self.is_playing, self.seed = Latest(DECIDERS), False, 0
        self.outbox.put(text_frame("world", **about(world), planners=PLANNERS))
        self.begin(0)
        self.say("status", text="")

    def opened(self) -> World:
        """The world; raises before one is open."""
        if self.world is None:
            raise ValueError("no world is open yet")
        return self.world

    def change(self, message: Change) -> None:
        """Other settings; those that the models do not allow leave the old ones in force."""
        world = self.opened()
        changes = {
            name: value
            for name in ("depth", "planner", "samples", "gamma", "alpha")
            if (value := getattr(message, name)) is not None
        }
        if changes.get("planner", PLANNERS[0]) not in PLANNERS:
            raise ValueError(f"the planner is one of {', '.join(PLANNERS)}")
        settings = usual(world, replace(self.settings, **changes))
        formula = self.formula if message.formula is None else message.formula
        world.reward(formula)
        world.models(settings.gamma, settings.alpha)
        if 0 in (settings.depth, message.second) and world.landmarks is None:
            raise ValueError(
                "the closed loop needs landmarks, which this world has none of: choose depth 1, 2 or 3"
            )
        if formula != self.formula:
            self.renew()
        if (formula, settings) != (self.formula, self.settings):
            self.is_stale, self.tally = True, _nothing(len(self.episodes))
        self.formula, self.settings = formula, settings
        self.speed = self.speed if message.speed is None else message.speed
        self.repeat = self.repeat if message.repeat is None else message.repeat
        second = self.second if message.second is None else message.second
        seed = self.seed if message.seed is None else message.seed
        if (second, seed) != (self.second, self.seed):
            self.second = second
            self.begin(seed)
        if message.formula is not None:
            reward = world.reward(formula)
            self.deciders.update(lambda made: made.with_reward(reward))
        self.tell_settings()

    def renew(self) -> None:
        """Another reward is another task: new episodes, from where the agents are."""
        for episode in self.episodes:
            if not episode.body.has_ended:
                episode.restart()

    def tell_settings(self) -> None:
        """The settings in force, and the code that does the same."""
        world = self.opened()
        moments = [
            code.Moment(self.settings_of(i), episode.body.state, self.seed, i, episode.t)
            for i, episode in enumerate(self.episodes)
        ]
        self.say(
            "settings",
            formula=self.formula,
            depth=self.settings.depth,
            second=self.second,
            planner=self.settings.planner,
            samples=self.settings.samples,
            gamma=self.settings.gamma or world.ghms.gamma,
            alpha=self.settings.alpha or world.ghms.alphas[0],
            speed=self.speed,
            repeat=self.repeat,
            seed=self.seed,
            put=self.placed,
            due=self.is_stale,
            python=code.python(world, self.formula, moments),
            command=code.command(world, self.formula, moments),
        )

    def begin(self, seed: int) -> None:
        """A new episode of every agent, from the same start."""
        world = self.opened()
        self.seed, self.placed = seed, None
        depths = [self.settings.depth] + [self.second] * (self.second >= 0)
        self.episodes = [Episode(world, world.body(seed), seed, i) for i in range(len(depths))]
        if len(self.tally) != len(depths) or seed == 0:
            self.tally = _nothing(len(depths))
        self.is_stale = True
        self.tell_settings()

    def put(self, x: float, y: float) -> None:
        """The agents at a place, in a new episode."""
        self.opened()
        if not all(episode.put(x, y) for episode in self.episodes):
            raise ValueError("the agent cannot be put there")
        self.is_stale, self.placed = True, (x, y)
        self.tell_settings()

    def settings_of(self, agent: int) -> Settings:
        """How an agent plans: the second one only has another depth."""
        return self.settings if agent == 0 else replace(self.settings, depth=self.second)

    def decider_of(self, agent: int) -> Decider:
        """The agent itself, made when it is first needed."""
        return self.decider_for(self.settings_of(agent), self.episodes[agent].body.state)

    def decider_for(self, settings: Settings, state: np.ndarray) -> Decider:
        """The agent of some settings; it is compiled in a state."""
        world = self.opened()
        if (made := self.deciders.get(settings)) is None:
            what = "the closed loop" if settings.depth == 0 else f"plans of depth {settings.depth}"
            self.say("status", text=f"Preparing {what}")
            with reported(lambda line: self.say("status", text=f"Preparing {what}: {line}")):
                made = prepared(world, settings, self.formula, state)
            self.deciders.put(settings, made)
        return made

    def plan_and_move(self) -> None:
        """Plans that are out of date, or one step if it is time for it."""
        if self.is_stale and self.episodes:
            self.is_stale = False
            for i, episode in enumerate(self.episodes):
                self.show(i, episode, self.decider_of(i))
            self.say("status", text="")
            self.show_reward()
            self.show_values()
        elif self.is_playing and self.episodes and time.monotonic() >= self.due:
            self.move()

    def pause(self) -> None:
        """The agents stop; from now on the code plans for where they are."""
        self.is_playing = False
        if self.episodes:
            self.tell_settings()

    def step(self) -> None:
        """One step of agents that stand still."""
        self.is_playing = False
        self.move()
        self.tell_settings()

    def move(self) -> None:
        """One step of every agent, and its next plan."""
        world, begun = self.opened(), time.monotonic()
        for i, episode in enumerate(self.episodes):
            chosen = self.decider_of(i)
            if episode.decision is None:
                self.show(i, episode, chosen)
            episode.step(as_reward(chosen.agent.reward))
            self.show(i, episode, chosen)
        self.due = max(begun + (world.seconds / self.speed if self.speed else 0.0), time.monotonic() - 1.0)
        if all(episode.is_over for episode in self.episodes):
            self.finish()

    def finish(self) -> None:
        """Counts successes, and starts again if the page wants that."""
        for i, episode in enumerate(self.episodes):
            if not episode.is_counted:
                episode.is_counted = True
                self.tally[i]["episodes"] += 1
                self.tally[i]["reached"] += episode.reached is not None
        self.say("tally", tally=self.tally)
        if self.repeat:
            self.begin(self.seed + 1)
        elif all(episode.body.has_ended for episode in self.episodes):
            self.pause()

    def show(self, agent: int, episode: Episode, chosen: Decider) -> None:
        """A moment of an agent's episode, after a new decision in it."""
        key = random_key(self.seed, agent, episode.t)
        episode.decide(chosen, self.settings_of(agent), self.formula, key=key)
        header, arrays = episode.moment()
        frame = binary_frame("moment", arrays, **header, agent=agent, tally=self.tally)
        self.outbox.put(frame, f"moment {agent}")

    def show_reward(self) -> None:
        """The reward on the map, of a body at rest."""
        world = self.opened()
        states, size = world.raster
        found = world.reward_at(self.formula, states)
        arrays = {"places": world.place(states), "values": found}
        self.outbox.put(binary_frame("rewards", arrays, formula=self.formula, size=size), "rewards")

    def show_values(self) -> None:
        """V on the map of each agent that plans in the closed loop."""
        world = self.opened()
        for i in range(len(self.episodes)):
            arrays: dict[str, np.ndarray] = {}
            fields: dict[str, Any] = {"agent": i}
            if self.settings_of(i).depth == 0:
                states, fields["size"] = world.raster
                arrays = {"places": world.place(states), "values": self.decider_of(i).values(states)}
            self.outbox.put(binary_frame("values", arrays, **fields), f"values {i}")

    def explain(self, agent: int, t: int) -> None:
        """The plans of an earlier moment, compared, by the agent that decided then."""
        world = self.opened()
        if agent >= len(self.episodes) or t >= len(self.episodes[agent].history):
            raise ValueError(f"there is no moment {t} of agent {agent + 1} yet")
        self.say("status", text="Comparing plans with simulation")
        past = self.episodes[agent].history[t]
        chosen = self.decider_for(past.settings, past.state)
        if past.formula != self.formula:
            chosen = chosen.with_reward(world.reward(past.formula))
        compare = explaining.explain if past.settings.depth else explain_loop
        found = compare(world, chosen, past)
        self.say("explained", agent=agent, t=t, **found)
        self.say("status", text="")

    def diagnose(self) -> None:
        """The models beside simulation, where the first agent is."""
        world = self.opened()
        self.say("status", text="Comparing models with simulation")
        ghms = world.models(self.settings.gamma, self.settings.alpha)
        rows, places = explaining.diagnose(world, ghms, self.episodes[0].body.state)
        self.outbox.put(binary_frame("diagnosed", {"places": places}, models=rows))
        self.say("status", text="")


def usual(world: World, settings: Settings) -> Settings:
    """The same settings, with None for the γ and the α that the models were made for."""
    own = world.ghms
    gamma = None if settings.gamma == own.gamma else settings.gamma
    return replace(settings, gamma=gamma, alpha=None if settings.alpha == own.alphas[0] else settings.alpha)


def _nothing(agents: int) -> list[dict[str, int]]:
    """The successes of agents before their first episode."""
    return [{"reached": 0, "episodes": 0} for _ in range(agents)]
