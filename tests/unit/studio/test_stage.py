"""What a page keeps: values of each agent, a few agents and graphs, and no program is compiled twice at once."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from ggpi.evaluation import queries
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.studio import preparing, worlds
from ggpi.studio import stage as stages
from ggpi.studio.catalogue import Catalogue, four_rooms
from ggpi.studio.decisions import Decider, Settings, decider
from ggpi.studio.outbox import Outbox
from ggpi.studio.protocol import Change, read_binary


class Sent(Outbox):
    """An outbox that keeps everything."""

    def __init__(self):
        self.frames = []

    def put(self, frame, kind=None):
        self.frames.append(frame)

    def last(self, kind):
        """The latest frame of text of a kind."""
        texts = [json.loads(frame) for frame in self.frames if isinstance(frame, str)]
        return next(text for text in reversed(texts) if text["type"] == kind)

    def values(self):
        """The latest values of each agent: the names of their arrays."""
        headers = [read_binary(frame)[0] for frame in self.frames if isinstance(frame, bytes)]
        return {header["agent"]: header["arrays"] for header in headers if header["type"] == "values"}


@pytest.fixture
def stage():
    found = stages.Stage(Catalogue({"four-rooms": four_rooms}), Sent())
    found.open("four-rooms")
    return found


@pytest.mark.slow
def test_values_are_of_the_agent_in_the_closed_loop(stage):
    stage.change(Change(depth=0, second=1, samples=20))
    stage.plan_and_move()
    assert [len(stage.outbox.values()[agent]) for agent in (0, 1)] == [2, 0]
    stage.change(Change(depth=1, second=0))
    stage.plan_and_move()
    assert [len(stage.outbox.values()[agent]) for agent in (0, 1)] == [0, 2]


def test_another_reward_is_another_episode_from_where_the_agent_is(stage):
    """Success is counted again, and what was met before does not count."""
    stage.change(Change(formula="disc(4, 2, 0.6)", depth=1, samples=500))
    stage.step()
    (episode,) = stage.episodes
    assert episode.t == episode.reached == 1 and stage.tally == [{"reached": 1, "episodes": 1}]
    stage.change(Change(formula="disc(4, 2, 0.6)", speed=2.0))
    assert episode.t == 1 and stage.tally == [{"reached": 1, "episodes": 1}]
    stage.change(Change(formula="disc(5, 2, 0.6)"))
    assert (episode.t, episode.reached, episode.total) == (0, None, 0.0)
    assert stage.tally == [{"reached": 0, "episodes": 0}]
    assert stage.world.place(episode.body.state).tolist() == [4, 2]
    stage.step()
    assert episode.reached == 1 and stage.tally == [{"reached": 1, "episodes": 1}]
    stage.change(Change(samples=6))
    assert episode.t == 1 and stage.tally == [{"reached": 0, "episodes": 0}]


def test_the_code_is_of_where_agents_stopped(stage):
    stage.change(Change(formula="disc(11, 2, 0.6)", depth=1, samples=20))
    for stop in (stage.step, stage.pause):
        stage.is_playing = True
        stage.move()
        stop()
        (episode,) = stage.episodes
        assert f"state    = {int(episode.body.state)}\n" in stage.outbox.last("settings")["python"]
        assert not stage.is_playing


def test_steps_that_a_page_may_have_missed_are_sent_again(stage):
    stage.change(Change(formula="disc(11, 2, 0.6)", depth=1, samples=20))
    for t in range(4):
        header, _ = stage.episodes[0].moment() if t else ({"way": []}, None)
        assert [(x, y) for x, y, *_ in header["way"]] == [(3 + k, 2) for k in range(t)]
        stage.move()
    moments = [read_binary(frame)[0] for frame in stage.outbox.frames if isinstance(frame, bytes)]
    policies = [moment["policy"] for moment in moments if moment["type"] == "moment"]
    assert [policy for *_, policy, _ in header["way"]] == policies[:3]


def test_an_episode_that_the_environment_ended_is_not_played_on(stage):
    stage.change(Change(depth=1, samples=5))
    stage.episodes[0].body.has_ended, stage.is_playing = True, True
    stage.move()
    assert not stage.is_playing and stage.tally == [{"reached": 0, "episodes": 1}]
    stage.change(Change(formula="x"))
    assert stage.episodes[0].is_counted


def test_the_settings_of_the_models_are_the_usual_ones(stage):
    """A link holds γ and α: it takes the agent that is compiled already."""
    own, before = stage.world.ghms, stage.settings
    stage.change(Change(gamma=own.gamma, alpha=own.alphas[0]))
    assert stage.settings == before
    stage.change(Change(gamma=0.5, alpha=0.5))
    assert (stage.settings.gamma, stage.settings.alpha) == (0.5, 0.5)
    stage.change(Change(gamma=own.gamma))
    assert (stage.settings.gamma, stage.settings.alpha) == (None, 0.5)


def test_a_page_keeps_the_agents_that_it_used_last(stage, monkeypatch):
    monkeypatch.setattr(stages, "prepared", lambda *of: Decider.__new__(Decider))
    for samples in (1, *range(10, 10 + stages.DECIDERS)):
        stage.settings = Settings(1, samples=samples)
        stage.decider_of(0)
        stage.settings = Settings(1, samples=10)
        stage.decider_of(0)
    assert len(stage.deciders) == stages.DECIDERS
    assert stage.deciders.get(Settings(1, samples=10)) is not None
    assert stage.deciders.get(Settings(1, samples=1)) is None


def test_a_world_keeps_the_graphs_that_were_used_last(monkeypatch):
    made = []

    def jumpy_graph(ghms, states, **options):
        made.append(options["alpha"])
        return JumpyGraph.__new__(JumpyGraph)

    monkeypatch.setattr(worlds, "jumpy_graph", jumpy_graph)
    world = four_rooms()
    first = world.graph(world.ghms, 0.5)
    for i in range(worlds.GRAPHS + 2):
        world.graph(world.ghms, 0.1 + 0.01 * i)
        assert world.graph(world.ghms, 0.5) is first
    assert len(world._graphs) == worlds.GRAPHS and made.count(0.5) == 1
    world.graph(world.ghms, 0.1)
    assert made.count(0.1) == 2


def test_one_page_prepares_and_the_others_take_it(monkeypatch):
    """Of pages that want the same settings, one compiles; each has its own reward."""
    world, count = four_rooms(), []

    def decide(made, world, state, key):
        count.append(1)
        threading.Event().wait(0.05)

    monkeypatch.setattr(preparing, "decide", decide)
    found = {}

    def prepare(formula):
        found[formula] = preparing.prepared(world, Settings(1, samples=5), formula, np.asarray(0))

    threads = [threading.Thread(target=prepare, args=(formula,)) for formula in ("x", "y", "x - y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(count) == 1
    for formula, made in found.items():
        expected = world.reward_at(formula, np.arange(104))
        np.testing.assert_allclose(made.agent.reward.values, expected)


def test_programs_of_earlier_settings_are_forgotten(stage, monkeypatch):
    """Every γ is compiled for; a page whose slider moves for long does not fill the memory."""
    monkeypatch.setattr(preparing, "PROGRAMS", 2)
    for gamma in (0.5, 0.6, 0.7, 0.8):
        stage.change(Change(gamma=gamma, depth=1, samples=2))
        stage.plan_and_move()
    assert len(queries._compiled.programs) <= 2
    assert stage.outbox.last("settings")["gamma"] == 0.8


def test_the_first_world_is_prepared_before_a_page_is_open(monkeypatch):
    seen = []
    monkeypatch.setattr(preparing, "prepared", lambda world, *rest: seen.append((world.name, *rest[:2])))
    preparing.warm(Catalogue({"four-rooms": four_rooms}))
    assert seen == [("four-rooms", Settings(2, samples=300), "disc(9, 7, 1.6)")]


def test_settings_that_models_do_not_allow_have_no_agent():
    world = four_rooms()
    with pytest.raises(ValueError, match="no landmarks"):
        decider(replace(world, landmarks=None), Settings(0), world.reward("x"))
