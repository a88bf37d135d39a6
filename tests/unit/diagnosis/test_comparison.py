"""compare: what each way of acting is paid on the same true episodes."""

import json
from inspect import unwrap as untyped  # as users call it: types are checked in tests only

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import ggpi
import ggpi.ghm.vae
from ggpi import rewards
from ggpi.cli.comparison_report import picture, write_comparison
from ggpi.diagnosis.comparison import Score, planners

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)


class Corridor(gymnasium.Env):
    """A place on a line that starts at the reset's seed; action 1 goes right. It ends at 5, or after 8 steps."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = float(seed or 0), 0
        return np.array([self.place], np.float32), {}

    def step(self, action):
        self.place, self.time = self.place + 2 * action - 1, self.time + 1
        return np.array([self.place], np.float32), 7.0, self.place >= 5, self.time >= 8, {}


class Wide(Corridor):
    """A corridor with one more action."""

    action_space = Discrete(3)


def always(action):
    return ggpi.policy_from(lambda s: jnp.eye(2)[action], 2, returns="probabilities", name=f"always {action}")


@pytest.fixture(scope="module")
def ghms():
    """Untrained models: what is compared here is how episodes are run and paid."""
    policies = [always(0), always(1)]
    data = ggpi.collect(Corridor(), policies, 200, switch_every=3)
    settings = {"model": ggpi.ghm.vae.VAEConfig(width=4, depth=1), "steps": 1, "batch_size": 16}
    return ggpi.fit(policies, data, gamma=0.5, alpha=0.5, key=KEY, **settings)


class Right:
    """An agent that goes right."""

    def act(self, states, *, key):
        return np.ones(len(states), int)


def place(state):
    return state[0]


@pytest.mark.slow
def test_every_way_is_paid_the_given_reward_from_the_same_resets(ghms):
    """Episode i starts at i: three of them, going left for 8 steps or right up to 5."""
    found = ggpi.compare(Corridor, ghms, rewards.arrival(place), agents={"right": Right()}, episodes=3)
    names = [score.name for score in found.scores]
    assert names == ["always 0", "always 1", "random switching", "right"]
    for name in ("always 1", "right"):
        score = found[name]
        assert score.steps.tolist() == [5, 4, 3]
        assert score.total.tolist() == [15, 14, 12]
        np.testing.assert_allclose(
            score.discounted, [sum((t + 1 + i) * 0.5**t for t in range(5 - i)) for i in range(3)]
        )
        assert score.terminated.all()
    assert found["always 0"].steps.tolist() == [8, 8, 8]
    assert found["always 0"].total.tolist() == [-36, -28, -20]
    assert not found["always 0"].terminated.any()


@pytest.mark.parametrize(
    ("reward", "total"),
    [
        (rewards.state(place), 10),
        (rewards.state_action(lambda s, a: 10 * a + s[0]), 60),
        (rewards.arrival(lambda s: float(s[0])), 15),
    ],
    ids=["state", "state_action", "python"],
)
def test_all_forms_of_reward(ghms, reward, total):
    found = ggpi.compare(Corridor, ghms, reward, agents={"right": Right()}, episodes=1)
    assert found["right"].total.tolist() == [total]


def test_episodes_are_cut_and_agents_are_made(ghms):
    agents = planners(ghms, rewards.arrival(place), num_samples=4)
    found = ggpi.compare(Corridor, ghms, rewards.arrival(place), agents=agents, episodes=2, max_steps=2)
    assert [score.name for score in found.scores][-3:] == ["GPI", "GGPI depth 2", "GGPI depth 3"]
    assert all(score.steps.tolist() == [2, 2] for score in found.scores)
    again = ggpi.compare(Corridor, ghms, rewards.arrival(place), agents=agents, episodes=2, max_steps=2)
    assert found.as_json() == again.as_json()


def test_what_is_written_is_what_was_found(ghms, tmp_path):
    found = ggpi.compare(Corridor, ghms, rewards.arrival(place), agents={"right": Right()}, episodes=3)
    write_comparison(found, "to the right", tmp_path)
    held = json.loads((tmp_path / "metrics.json").read_text())
    assert [row["mean"] for row in held["scores"]] == [score.mean for score in found.scores]
    assert held["scores"][0]["total"] == [-36, -28, -20]
    (ax,) = picture(found, "to the right").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [score.name for score in found.scores]
    assert "always 0" in str(found) and "-28" in str(found)


def test_intervals_hold_the_mean_and_shrink_to_equal_numbers():
    numbers = np.arange(10.0)
    score = Score("a", "agent", numbers, numbers, numbers, numbers > 3)
    low, high = score.interval()
    assert 0 < low < score.mean == 4.5 < high < 9
    same = Score("b", "agent", *np.full((4, 5), 2.0))
    assert same.interval() == (2.0, 2.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"env": 3}, "id of an environment or a function"),
        ({"env": "Pendulum-v9"}, "'Pendulum-v9': Environment version"),
        ({"env": "Pendulum-v1"}, r"policy 0 \(always 0\) .*Pendulum-v1 expects floats"),
        ({"env": Wide}, r"policy 0 \(always 0\) chooses between 2 actions, environment Wide has 3"),
        ({"agents": [Right()]}, "agents is a dict, such as .* got a list"),
        ({"agents": {"three": 3}}, r"agent 'three' is a int, expected .* act\(states, \*, key\)"),
        ({"episodes": 0}, "episodes is at least 1"),
        ({"reward": rewards.arrival(lambda s: s)}, "one number"),
    ],
)
def test_mistakes_are_named(ghms, given, words):
    settings = {"env": Corridor, "reward": rewards.arrival(place), "agents": {}, "max_steps": 1} | given
    with pytest.raises((TypeError, ValueError), match=words):
        untyped(ggpi.compare)(settings.pop("env"), ghms, settings.pop("reward"), **settings)


def test_an_agent_predicts_as_stable_baselines_does(ghms):
    """Calls differ by their number alone: agents of one seed agree, and so do single states and batches in shape."""
    agents = [
        ggpi.GGPIAgent(ghms, rewards.arrival(place), depth=1, num_samples=2, seed=seed) for seed in (3, 3)
    ]
    states = np.arange(4.0)[:, None]
    first = [[agent.predict(states, deterministic=False)[0].tolist() for _ in range(4)] for agent in agents]
    assert first[0] == first[1]
    action, state = agents[0].predict(states[0], state="kept", episode_start=np.ones(1))
    assert action.shape == () and state == "kept"
    expected = agents[1].act(states[0], key=jax.random.fold_in(jax.random.key(3), 4))
    assert action == expected
