"""Algorithm 1 with learned models: improvement works; with exact models depth 2 saves iterations."""

import jax
import numpy as np
import pytest

from chance import error_of_mean
from ggpi import rewards
from ggpi.lab.cells import as_stored
from ggpi.lab.iteration import learned_policy_iteration as experiment
from ggpi.lab.iteration import learned_policy_iteration_figure as experiment_figure
from ggpi.lab.iteration import policies as parts
from ggpi.lab.iteration.coin_corridor import CoinCorridor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.mark.slow
def test_the_first_learned_improvement_beats_the_first_policy(metrics):
    for method in ("depth-2", "depth-inf"):
        before, after = metrics["learned"]["right"][method]["runs"][0]
        assert after > before


def test_table_and_figure_come_from_metrics(metrics):
    (table,) = experiment_figure.table(metrics)
    assert table.row_count == 5  # depth 2 and ∞, and three of exact models
    experiment_figure.plot(metrics).canvas.draw()


def test_with_exact_models_depth_2_reaches_the_stated_return_first():
    config = experiment.Config()
    given = config.length, config.gamma, config.alpha
    curves = [parts.exact_returns("right", *given, depth, 6) for depth in experiment.DEPTHS]
    first = [int(np.argmax(np.array(curve) >= config.stated)) for curve in curves]
    assert first[:2] == [5, 2] and first[2] <= 2
    uniform = [parts.exact_returns("uniform", *given, depth, 2) for depth in (1, 2)]
    assert uniform[0] == pytest.approx(uniform[1]) and uniform[0][2] > 0.99


def test_returns_are_what_a_long_simulation_earns():
    """The share of a policy against discounted sums of what its episodes pay."""
    world, gamma = CoinCorridor(3), 0.5
    policy = parts.first_policy("uniform")
    states = world.observe(np.repeat(np.arange(world.mdp.num_states), 400), np.random.default_rng(0))
    earned, rng = np.zeros(len(states)), np.random.default_rng(1)
    for t in range(20):
        actions = np.asarray(policy.sample(states, key=jax.random.fold_in(jax.random.key(0), t)))
        states = world.step(states, actions, rng)
        earned += gamma**t * np.array(world.arrival_rewards)[world.cell(states)]
    exact = world.mdp.v(np.full((7, 4), 0.25), rewards.arrival(world.arrival_rewards), gamma)
    share = parts.score(world, policy, gamma)
    optimum = exact.mean() / share
    width = 2 * np.ptp([*world.arrival_rewards, 0])
    assert abs(earned.mean() - share * optimum) < error_of_mean(earned.std(), len(earned), width)
    assert optimum > exact.mean()


def test_a_fitted_policy_takes_the_best_action():
    states = CoinCorridor(3).start(200, np.random.default_rng(0))
    best = (states[:, 0] > 0).astype(int) + 2 * (states[:, 1] > 0.5)
    policy = parts.fitted_policy(states, np.eye(4)[best], 200, key=jax.random.key(0))
    assert (np.asarray(policy.mode(states)) == best).mean() > 0.95


def test_episodes_start_freely_and_go_on_with_the_policy():
    data = parts.episodes(CoinCorridor(3), parts.first_policy("right"), 50, 6, seed=0)
    data.check()
    first = data.step == 0
    assert set(data.action[first]) == {0, 1, 2, 3} and (data.action[~first] == 2).all()
    assert (data.state[1:][~first[1:]] == data.next_state[:-1][~first[1:]]).all()


def test_summary_counts_runs_that_never_get_there():
    found = experiment.summary([[0.1, 0.95, 0.2], [0.1, 0.2, 0.3]], 0.9)
    assert found["until"]["mean"] == 2.0 and found["censored"] == 1
    assert [point["mean"] for point in found["returns"]] == pytest.approx([0.1, 0.575, 0.25])


@pytest.mark.parametrize(
    "wrong", [{"starts": ("left",), "iterations": (1,)}, {"iterations": (1,)}, {"stated": 1.5}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="got"):
        experiment.Config(**wrong)
