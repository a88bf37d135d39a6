"""Graphs that do not belong, data that cannot be used, and what is said of landmarks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corridor
import ggpi
from ggpi import GGPIAgent, jumpy_graph, rewards
from ggpi.agent import NoRewardWarning, UnfamiliarStateWarning, fresh_values
from ggpi.agent.checks import checked_closed_loop
from ggpi.planning import SequentialHalving
from ggpi.planning.graph_values import jump_matrix, solve_graph
from ggpi.planning.landing import _counted
from ggpi.planning.landmarks import atlas_of, choose, interpolation, points_of, reach_of, shares, units_of

KEY = jax.random.key(0)
REWARD = rewards.arrival(corridor.HILLS)
SMALL = {"num_landmarks": 40, "num_jumps": 4, "num_neighbours": 2}


@pytest.fixture(scope="module")
def ghms():
    return corridor.models()


@pytest.fixture(scope="module")
def graph(ghms):
    return jumpy_graph(ghms, corridor.states(), **SMALL, key=KEY)


def _named(policy, name):
    return dataclasses.replace(policy, name=name)


def test_landmarks_are_different_states_that_cover_the_data():
    """99% of the data lie in a hundredth of its range: landmarks that are drawn at random leave wide gaps."""
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.uniform(0, 0.01, 4000), rng.uniform(0, 1, 40)])[:, None]
    chosen = choose(data, 40, rng)
    assert len(set(chosen)) == 40
    apart, at_random = (
        np.abs(data - data[rows].T).min(axis=1).max() for rows in (chosen, rng.choice(len(data), 40, False))
    )
    assert apart < 0.1 < at_random
    assert sorted(choose(data[:50], 50, rng)) == list(range(50)), "all states, if as many are wanted"


def test_units_of_positions():
    rng = np.random.default_rng(1)
    data = rng.normal(size=(50_000, 4)) * [3, 4, 10, 0]
    np.testing.assert_allclose(units_of(data, ()), [3, 4, 10, 1e-3], rtol=0.05)
    shared = np.sqrt((9 + 16) / 2)
    expected = [shared, shared, 10 * np.sqrt(2) / 0.1, 1e-3 * np.sqrt(2) / 0.1]
    np.testing.assert_allclose(units_of(data, (0, 1)), expected, rtol=0.05)
    np.testing.assert_array_equal(units_of(np.arange(5), ()), [1])


def test_weights_of_neighbours_and_jumps():
    np.testing.assert_allclose(
        interpolation(jnp.array([[1.0, 2.0], [0.0, 1.0], [0.0, 0.0]])), [[0.8, 0.2], [1, 0], [0.5, 0.5]]
    )
    np.testing.assert_allclose(
        shares(jnp.array([[0.1, 0.5, 2.0], [3.0, 2.0, 4.0]]), 1.0), [[0.5, 0.5, 0], [0, 1, 0]]
    )


def test_jumps_that_are_left_out_count_neither_in_means_nor_in_errors():
    values = jnp.array([[[1.0, 2.0, 6.0, 100.0], [5.0, 6.0, 7.0, 8.0]]])
    share = jnp.array([[[1 / 3, 1 / 3, 1 / 3, 0], [0, 0, 1, 0]]])
    found = _counted(values, share)
    np.testing.assert_allclose(found.mean(axis=2), [[3, 7]], rtol=1e-6)
    stderr = np.sqrt(found.var(axis=2) / 3)
    np.testing.assert_allclose(
        stderr, [[np.std([1, 2, 6], ddof=1) / np.sqrt(3), np.std([5, 6, 7, 8]) / np.sqrt(3)]], rtol=1e-5
    )


def test_reach_is_the_distance_to_another_landmark():
    grid = np.arange(1000.0)[:, None]
    assert reach_of(grid, grid) == 1.0, "a landmark does not cover itself"
    assert reach_of(np.concatenate([grid, [[5000.0]]]), grid) == pytest.approx(1.0), (
        "outliers are not within reach"
    )
    assert reach_of(grid, grid[::10]) == pytest.approx(10, abs=0.1)


def test_a_compiled_search_finds_the_nearest():
    rng = np.random.default_rng(2)
    landmarks, states = (rng.normal(size=(n, 3)).astype(np.float32) + 100 for n in (300, 50))
    units = np.array([1.0, 2.0, 0.5])
    rows, apart = atlas_of(landmarks, units, 1.0, 4).nearest(states)
    exact = np.linalg.norm((states[:, None] - landmarks) / units, axis=-1)
    np.testing.assert_array_equal(rows, np.argsort(exact, axis=1)[:, :4])
    np.testing.assert_allclose(apart, np.sort(exact, axis=1)[:, :4], atol=1e-4)
    rows, apart = atlas_of(np.arange(1000), np.ones(1), 1.0, 1).nearest(jnp.array([0, 17, 999]))
    assert rows[:, 0].tolist() == [0, 17, 999] and not apart.any()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("c", [0.0, 0.5, 0.99])
def test_values_are_solved_relative_to_themselves(sign, c):
    """A chain of 60 landmarks, each one jump from the next: cⁿ of the last one's value, for rewards and for costs."""
    M = 60
    neighbour = np.minimum(np.arange(M) + 1, M - 1).astype(np.int32).reshape(1, M, 1, 1)
    f = np.zeros((1, M), np.float32)
    f[0, -1] = sign
    found = solve_graph(f, jump_matrix(np.ones((1, M, 1, 1), np.float32), neighbour), c)
    exact = sign * c ** np.arange(M - 1, -1, -1.0) / (1 - c)
    large = np.abs(exact) >= 1e-11 * np.abs(exact).max()
    np.testing.assert_allclose(found[large], exact[large], rtol=2e-4)


def test_jumps_to_the_same_landmark_are_one_entry():
    """The matrix is that of all jumps, with at most as many entries in a row as landmarks are reached."""
    rng = np.random.default_rng(0)
    K, M, n, m = 2, 7, 50, 3
    weight = rng.uniform(size=(K, M, n, m)).astype(np.float32)
    neighbour = rng.integers(M, size=weight.shape).astype(np.int32)
    given = weight.copy(), neighbour.copy()
    dense = np.zeros((K * M, M))
    np.add.at(dense, (np.repeat(np.arange(K * M), n * m), neighbour.ravel()), weight.ravel().astype(float))
    found = jump_matrix(weight, neighbour)
    assert found.nnz == K * M * M
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-4)
    np.testing.assert_array_equal(weight, given[0])
    np.testing.assert_array_equal(neighbour, given[1])


def test_what_jumps_out_of_reach_is_left_out(graph):
    """A jump counts if it ends within reach of a landmark; the shares of a landmark's jumps sum to 1."""
    jumps = graph.jumps
    np.testing.assert_allclose(jumps.share.sum(axis=2), 1, rtol=1e-6)
    np.testing.assert_allclose(jumps.weight.sum(axis=3), jumps.share, rtol=1e-5)
    out = jumps.distance > graph.reach
    assert not jumps.share[out & ~out.all(axis=2, keepdims=True)].any()
    np.testing.assert_allclose(
        jumps.distance.ravel(), graph.distance(jumps.end.reshape(-1, 1)), atol=1e-5, rtol=1e-5
    )


def test_actions_are_those_of_the_policies():
    """At landmarks and where jumps end: two policies that do different things in every state of four rooms."""
    mdp, rng = ggpi.envs.four_rooms(), np.random.default_rng(0)
    first = rng.integers(4, size=mdp.num_states)
    chosen = np.stack([first, (first + 1) % 4])
    exact = ggpi.exact_ghms(mdp, [np.eye(4)[row] for row in chosen], 0.9, 0.5)
    graph = jumpy_graph(exact, np.arange(mdp.num_states), **SMALL, key=KEY)
    for k, actions in enumerate(chosen):
        assert (graph.jumps.action[k] == actions[graph.landmarks][:, None]).all()
        np.testing.assert_array_equal(graph.jumps.end_action[k], actions[graph.jumps.end[k]])


def test_coverage(ghms):
    """Every distance by its definition, over all pairs; jumps into terminal states count as jumps only."""
    data = corridor.states()
    graph = jumpy_graph(ghms, data[data[:, 0] < 150], **SMALL, terminal=lambda state: state[0] < 5, key=KEY)
    jumps, points, found = graph.jumps, graph.landmarks / graph.units, graph.diagnose()
    assert jumps.ended.any() and (jumps.share[~jumps.ended] == 0).any()

    def quantiles(distances):
        return np.quantile(distances, [0.05, 0.5, 0.95, 1])

    spacing = np.sort(np.abs(points - points.T), axis=1)[:, 1]
    ends = jumps.end[..., 0] / graph.units
    nearest = np.abs(ends[..., None] - points[:, 0]).min(axis=-1)[~jumps.ended]
    counts = (jumps.share > 0) & ~jumps.ended
    mean = (jumps.weight * points[jumps.neighbour][..., 0]).sum(axis=3)[counts] / jumps.share[counts]
    for shown, distances in (
        (found.spacing, spacing),
        (found.ends, nearest),
        (found.snapping, np.abs(mean - ends[counts])),
        (found.jump, np.abs(ends - points[:, :1])),
    ):
        np.testing.assert_allclose(shown, quantiles(distances), rtol=1e-3, atol=1e-5)
    assert found.far == (jumps.distance[~jumps.ended] > np.quantile(spacing, 0.95)).mean() > 0
    assert found.dropped == (jumps.share == 0).mean() and found.reach == graph.reach
    assert f"{found.dropped:.1%} are left out" in str(found) and "landmark to nearest other" in str(found)


def test_saved_and_loaded(graph, ghms, tmp_path):
    ggpi.save(tmp_path, graph)
    again = ggpi.load(tmp_path)
    again.check_models(ghms)
    np.testing.assert_array_equal(again.solve(REWARD), graph.solve(REWARD))
    assert str(again.diagnose()) == str(graph.diagnose())
    broken = dataclasses.replace(graph.jumps, neighbour=graph.jumps.neighbour + 1)
    ggpi.save(tmp_path, dataclasses.replace(graph, jumps=broken))
    with pytest.raises(ggpi.FileError, match="neighbours are not landmarks 0 to 39"):
        ggpi.load(tmp_path)


def test_graphs_with_broken_parts_are_not_loaded(graph, tmp_path):
    """NaN compares false with everything: without these checks it would pass for the best value, or for none."""
    landmarks, jumps = graph.landmarks.copy(), graph.jumps
    landmarks[3] = np.nan
    for changes, said in (
        ({"landmarks": landmarks}, "landmarks, units or jumps are not finite"),
        ({"units": np.zeros(1)}, "not finite"),
        ({"gamma": 1.5}, "γ lies in"),
        ({"alpha": 0.0}, "α"),
        ({"sizes": (3, 2)}, "sizes of a finite MDP"),
        ({"landmarks": landmarks[:5]}, "jumps are not all of 2 policies, 5 landmarks"),
        ({"jumps": dataclasses.replace(jumps, end=jumps.end + np.inf)}, "not finite"),
        ({"jumps": dataclasses.replace(jumps, share=jumps.share * 2)}, "do not count 1 together"),
        ({"jumps": dataclasses.replace(jumps, weight=jumps.weight * 2)}, "weigh more than 1"),
        ({"jumps": dataclasses.replace(jumps, weight=-jumps.weight)}, "do not count 1 together"),
    ):
        with pytest.raises(ggpi.FileError, match=said):
            ggpi.save(tmp_path, dataclasses.replace(graph, **changes))
            ggpi.load(tmp_path)


@pytest.mark.slow
def test_models_of_one_network():
    """The α of the graph is that of models made for it; saved models are recognised."""
    saved = ggpi.load(corridor.SAVED / "one-network-ghms")
    data = np.random.default_rng(0).normal(size=(50, 3))
    graph = jumpy_graph(saved, data, num_landmarks=5, num_jumps=1, num_neighbours=1, alpha=0.5, key=KEY)
    agent = GGPIAgent(saved, rewards.target([0, 0], 1.0), depth="inf", graph=graph, num_samples=2)
    assert agent.ghms.alphas == (0.25, 0.5)
    graph.check_models(saved.with_alpha(0.5))


class TestWrongInput:
    def test_numbers(self, ghms):
        data = corridor.states(count=50)
        for wrong, said in (
            ({"num_landmarks": 51}, "num_landmarks is 51, but there are 50 states"),
            ({"num_landmarks": 0}, "num_landmarks is at least 1"),
            ({"num_jumps": 0}, "num_jumps is at least 1"),
            ({"num_neighbours": 0}, "num_neighbours is at least 1"),
            ({"num_neighbours": 41}, "num_neighbours is at most num_landmarks, 40, got 41"),
            ({"alpha": 0.3}, "none for α = 0.3"),
        ):
            with pytest.raises(ValueError, match=said):
                jumpy_graph(ghms, data, **{**SMALL, **wrong}, key=KEY)

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (np.full((50, 1), np.nan), "50 of 50 states are not finite"),
            (np.zeros((50, 1)), "the data has 1 different states"),
            (np.zeros((50, 2)), r"states \[N, 1\], got float64 \[50, 2\]"),
            (np.zeros((0, 1)), "there are 0 states"),
        ],
    )
    def test_data(self, ghms, data, said):
        with pytest.raises(ValueError, match=said):
            jumpy_graph(ghms, data, **SMALL, key=KEY)

    def test_numbered_states(self):
        mdp = ggpi.envs.four_rooms()
        exact = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.constant(mdp, 0)], 0.9, 0.5)
        with pytest.raises(ValueError, match="numbers of states"):
            jumpy_graph(exact, np.zeros((50, 2)), **SMALL, key=KEY)
        with pytest.raises(ValueError, match=f"from 0 to {mdp.num_states - 1}, got 0 to {mdp.num_states}"):
            jumpy_graph(exact, np.arange(mdp.num_states + 1), **SMALL, key=KEY)

    def test_terminal_states_only(self, ghms):
        with pytest.raises(ValueError, match="0 different states that are not terminal"):
            jumpy_graph(ghms, corridor.states(), **SMALL, terminal=lambda state: state[0] >= 0, key=KEY)

    @pytest.mark.parametrize(
        ("other", "said"),
        [
            ({"gamma": 0.9}, r"graph is of γ = 0.98 and α = 0.1, the models are of γ = 0.9"),
            ({"alpha": 0.5}, r"α in \[0.5\]"),
        ],
    )
    def test_models_of_other_horizons(self, graph, other, said):
        with pytest.raises(ValueError, match=said):
            GGPIAgent(corridor.models(**other), REWARD, depth="inf", graph=graph)

    def test_other_models(self, graph, ghms):
        fewer = dataclasses.replace(
            ghms, policies=ghms.policies[:1], models=jax.tree.map(lambda leaf: leaf[:1], ghms.models)
        )
        with pytest.raises(ValueError, match="jumps of 2 policies, there are models of 1"):
            GGPIAgent(fewer, REWARD, depth="inf", graph=graph)
        left, right = ghms.policies
        turned = dataclasses.replace(ghms, policies=(_named(right, "left"), _named(left, "right")))
        with pytest.raises(ValueError, match="made of other models, or of other policies"):
            GGPIAgent(turned, REWARD, depth="inf", graph=graph)

    def test_arguments_of_an_agent(self, graph, ghms):
        for wrong, said in (
            ({"depth": "inf"}, "depth='inf' and no graph"),
            ({"depth": 2, "graph": graph}, "depth=2 and a graph"),
            ({"depth": "inf", "graph": graph, "planner": SequentialHalving(100)}, "leave out planner"),
            ({"depth": "inf", "graph": graph, "first_actions": "step"}, "leave out first_actions='step'"),
            (
                {"depth": "inf", "graph": graph, "terminal": lambda state: state[0] > 5},
                "the agent knows terminal",
            ),
        ):
            with pytest.raises(ValueError, match=said):
                GGPIAgent(ghms, REWARD, **wrong)
        with pytest.raises(TypeError, match="returns, got str"):
            checked_closed_loop("inf", "graph", ghms, None, {})

    def test_an_agent_with_other_terminal_states(self, ghms):
        """The same ones in other words pass; a few jumps more or less are how another machine rounds."""
        ends = jumpy_graph(ghms, corridor.states(), **SMALL, terminal=lambda state: state[0] >= 150, key=KEY)
        for terminal in (lambda state: state[0] >= 150, lambda state: ~(state[0] < 150)):
            GGPIAgent(ghms, REWARD, depth="inf", graph=ends, terminal=terminal)
        beyond = int((ends.jumps.end >= 120).sum() - ends.jumps.ended.sum())
        with pytest.raises(ValueError, match=f"of its 320 jumps, {beyond} are terminal for one of"):
            GGPIAgent(ghms, REWARD, depth="inf", graph=ends, terminal=lambda state: state[0] >= 120)

    def test_rewards(self, graph):
        with pytest.raises(ValueError, match="the reward is inf at sample"):
            graph.solve(rewards.state(lambda state: jnp.where(state[0] > 50, jnp.inf, 0.0)))
        with pytest.raises(ValueError, match="here states are vectors"):
            graph.solve(rewards.state(np.zeros(5)))


def test_fresh_values_are_of_a_graph_and_one_reward(ghms, graph):
    agent = GGPIAgent(ghms, REWARD, depth="inf", graph=graph, num_samples=4)
    for wrong, count, said in (
        (GGPIAgent(ghms, REWARD, depth=1), 5, 'give an agent with depth="inf"'),
        (agent.with_reward(rewards.each([REWARD, REWARD])), 5, "one reward at a time, the agent has 2"),
        (agent, 0, "num_landmarks is at least 1"),
    ):
        with pytest.raises(ValueError, match=said):
            fresh_values(wrong, count, key=KEY)


def test_rewards_of_plain_python(graph):
    def hills(state):
        return float(corridor.HILLS(np.asarray(state))) if state[0] > -1 else 0.0

    np.testing.assert_allclose(graph.solve(rewards.arrival(hills)), graph.solve(REWARD), rtol=1e-4)


def test_a_state_far_from_every_landmark_is_warned_of_once(ghms):
    data = corridor.states()
    graph = jumpy_graph(ghms, data[data[:, 0] < 100], **SMALL, key=KEY)
    agent = GGPIAgent(ghms, REWARD, depth="inf", graph=graph, num_samples=4)
    agent.act([90.0], key=KEY)
    apart = graph.distance(np.array([[180.0]]))[0]
    with pytest.warns(UnfamiliarStateWarning, match=f"distance of {apart:.3g}, in units"):
        agent.act([180.0], key=KEY)
    agent.act([190.0], key=KEY)


def test_a_reward_that_no_jump_reaches_asks_for_a_larger_graph(ghms, graph):
    nowhere = rewards.arrival(lambda state: jnp.where(state[0] > 1e6, 1.0, 0.0))
    with pytest.warns(NoRewardWarning, match="a graph with more landmarks and jumps"):
        GGPIAgent(ghms, nowhere, depth="inf", graph=graph, num_samples=4).act([100.0], key=KEY)


def test_another_reward_compiles_nothing(ghms, graph):
    agent = GGPIAgent(ghms, REWARD, depth="inf", graph=graph, num_samples=4)
    agent.act([100.0], key=KEY)
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        compiled = []
        patch.setattr("jax._src.interpreters.pxla.logger.log", lambda *args, **_: compiled.append(args))
        agent.with_reward(rewards.arrival(corridor.Hills(jnp.float32(2.0)))).act([90.0], key=KEY)
    assert not compiled


def test_points_are_in_units_of_the_data():
    np.testing.assert_array_equal(points_of(np.array([[2.0, 3.0]]), np.array([2.0, 1.0])), [[1.0, 3.0]])
    np.testing.assert_array_equal(points_of(np.array([4, 5]), np.ones(1)), [[4.0], [5.0]])
