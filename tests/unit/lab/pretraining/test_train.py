"""Pretraining: what is practised and paid, and that a killed run goes on to the same bits."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

import ggpi
from ggpi.cli.main import main

pytest.importorskip("mujoco")

from ggpi.envs.ant import CONTROL_STEP, SPEC
from ggpi.envs.directions import DIAGONALS, DIRECTIONS
from ggpi.lab.pretraining import preset, pretrain
from ggpi.lab.pretraining.replay import Replay
from ggpi.lab.pretraining.trials import one_each, one_switch, random_switches
from ggpi.lab.pretraining.walking import Steps, Walk, Walkers, displacements, rewards, stack


class Killed(Exception):
    pass


def kill_after(rounds):
    def report(done, numbers):
        if done == rounds:
            raise Killed

    return report


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "mpo"])
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, algorithm):
    config = preset("tiny", algorithm)
    whole = pretrain(config, tmp_path / "whole")
    with pytest.raises(Killed):
        pretrain(config, tmp_path / "parts", kill_after(3))  # the last checkpoint is from round 2
    parts = pretrain(config, tmp_path / "parts")
    assert eqx.tree_equal(whole, parts)
    texts = [(tmp_path / name / "training.json").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]
    saved = ggpi.load(tmp_path / "whole" / "policies")
    assert eqx.tree_equal(saved, whole)
    with pytest.raises(ValueError, match="another config"):
        pretrain(replace(config, seed=9), tmp_path / "whole")


def test_foreign_files_are_never_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="not a training"):
        pretrain(preset("tiny"), tmp_path)


@pytest.mark.slow
def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        main(["pretrain", "ant", "--preset", "tiny", "--algorithm", "ppo", "--seed", "3", "--rounds", "1"])
        == 0
    )
    folder = tmp_path / "results" / "pretrain-ant-tiny-ppo-seed3"
    assert str(folder.relative_to(tmp_path) / "policies") in capsys.readouterr().out
    about = json.loads((folder / "training.json").read_text())
    assert about["command"] == "ggpi pretrain ant --preset tiny --algorithm ppo --seed 3 --rounds 1"
    assert about["config"]["seed"] == 3 and about["versions"]["mujoco"] == "4.0.0"
    assert len(about["curve"]["along"]) == len(about["curve"]["steps"]) == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["bat"], "the worlds are: ant"),
        (["ant", "--preset", "huge"], "the presets are"),
        (["ant", "--algorithm", "sac"], "the algorithms are: mpo, ppo"),
        (["ant", "--wings", "2"], "--wings"),
    ],
)
def test_bad_commands_are_one_line(capsys, arguments, words):
    assert main(["pretrain", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_directions_last_uniform_times_and_falls_start_anew():
    walkers = Walkers(Walk(num_ants=50, switch_every=10), seed=0)
    steps = stack([walkers.step(np.zeros((50, 8))) for _ in range(60)])
    spans = np.concatenate([np.diff(np.flatnonzero(steps.cut[:, i])) for i in range(50)])
    # some 490 uniform lengths, whose mean is 5.5 ± 0.13, but less by 0.2 as long ones are cut at the record's end
    assert spans.min() == 1 and spans.max() == 10 and abs(spans.mean() - 5.5) < 1
    same = ~steps.cut[:-1]
    np.testing.assert_array_equal(steps.direction[1:][same], steps.direction[:-1][same])
    np.testing.assert_array_equal(steps.state[1:][same], steps.next_state[:-1][same])
    walkers.env.batch.qpos[7, 3:7] = 0, 1, 0, 0  # on its back
    fallen = walkers.step(np.zeros((50, 8)))
    assert fallen.fell[7] and fallen.cut[7] and fallen.reward[7] < -40
    assert walkers.states[7, SPEC.index("up_z")] == 1 and walkers.env.steps[7] == 0


def test_without_switches_a_direction_lasts_for_the_episode():
    walkers = Walkers(Walk(num_ants=5, switch_every=0), seed=0)
    steps = stack([walkers.step(np.zeros((5, 8))) for _ in range(145)])
    ends = [np.flatnonzero(steps.cut[:, i]) for i in range(5)]
    assert all(len(each) == 1 and 99 <= each[0] <= 139 for each in ends)


def test_rewards():
    state, following = np.zeros((2, 4, 35))
    state[:, 8] = following[:, 8] = 1
    following[:, :2] = [0.24, 0.12]
    along, across = displacements(state, following, np.arange(4))
    np.testing.assert_allclose(along, [0.24, 0.12, -0.24, -0.12], atol=1e-7)
    np.testing.assert_allclose(across, [0.12, -0.24, -0.12, 0.24], atol=1e-7)
    along, across = along / CONTROL_STEP, across / CONTROL_STEP
    walk = Walk(lateral=0.5, effort=0.1, tilt=3.0, fall=7.0)
    action = np.full((4, 8), 2.0)  # counts as 1
    following[0, 8] = 0.5
    paid = rewards(walk, state, action, following, np.arange(4), np.arange(4) == 1)
    wanted = along - 0.5 * abs(across) - 0.8 - np.array([1.5, 0, 0, 0]) - np.array([0, 7, 0, 0])
    np.testing.assert_allclose(paid, wanted, rtol=1e-5)


def test_phases_of_training():
    """Curious, then settled; in the end careful, at higher prices."""
    from ggpi.lab.pretraining import Training

    config = preset("tiny", "ppo")
    walk, learn = replace(config.walk, careful_after=2), replace(config.ppo, curious_rounds=1)
    training = Training(replace(config, walk=walk, ppo=learn))
    prices = []
    for _ in range(3):
        training.round()
        prices.append(training.walkers.walk.fall)
    assert prices == [50, 50, 300]
    assert learn.settled().entropy == 0 < learn.entropy and learn.settled().min_rate < learn.min_rate


def test_replay_keeps_the_newest_trajectories():
    def steps(first):
        numbers = np.arange(first, first + 12).reshape(4, 3)  # 4 steps of 3 ants
        wide = np.repeat(numbers[..., None], 35, axis=-1).astype(np.float32)
        flags = np.zeros((4, 3), bool)
        return Steps(wide, numbers, wide[..., :8], wide + 3, numbers, flags, flags)

    replay = Replay(capacity=24)
    for first in (0, 100, 200):
        replay.add(steps(first))
    assert len(replay) == 6
    drawn = replay.sample(5, 16, 2, np.random.default_rng(0))
    assert drawn["state"].shape == (5, 32, 35) and drawn["fell"].shape == (5, 32)
    assert drawn["state"].min() >= 100
    pairs = drawn["direction"].reshape(5, 16, 2)
    np.testing.assert_array_equal(pairs[..., 1] - pairs[..., 0], 3)  # one ant's consecutive steps
    np.testing.assert_array_equal(drawn["next_state"], drawn["state"] + 3)
    with pytest.raises(ValueError, match="between 1 and 4 steps"):
        replay.sample(1, 1, 5, np.random.default_rng(0))


def test_turns():
    assert one_each(4, 3, 2).tolist() == [[0, 0, 1, 1, 2, 2, 3, 3]] * 3
    pairs = one_switch(4, 1, 2, 5)
    assert pairs.shape == (3, 60) and (pairs[0] != pairs[1]).all() and (pairs[1] == pairs[2]).all()
    mixed = random_switches(4, 40, 120, 50, seed=0)
    assert mixed.shape == (120, 50) and set(mixed.ravel()) == {0, 1, 2, 3}
    assert 2 < np.mean((np.diff(mixed, axis=0) != 0).sum(axis=0)) < 7  # over ten seeds 4.0 ± 0.2


@pytest.mark.slow
def test_ogbenchs_ant_walks_in_eight_directions_among_pillars(tmp_path):
    pytest.importorskip("ogbench")
    config = preset("tiny", world="ogbench-ant")
    policies = pretrain(config, tmp_path / "ant")
    assert [policy.name for policy in policies] == [*DIRECTIONS, *DIAGONALS]
    assert policies[5].sample(np.zeros((3, 29), np.float32) + 0.1, key=jax.random.key(0)).shape == (3, 8)
    about = json.loads((tmp_path / "ant" / "training.json").read_text("utf-8"))
    assert about["config"]["walk"]["world"] == "ogbench-ant" and len(about["curve"]["along"]) == config.rounds


def test_pillars_stand_apart_and_ants_start_between_them():
    pytest.importorskip("ogbench")
    walkers = Walkers(Walk(num_ants=64, world="ogbench-ant"), seed=0, rough=True)
    ground = walkers.env.ground
    assert ground.control_step == pytest.approx(0.1) and len(ground.pillars) == 10
    assert all(ground.is_free(place) for place in walkers.states[:, :2])
    assert not ground.is_free(ground.pillars[0] + 1.9)
    assert set(walkers.direction) == set(range(8))
