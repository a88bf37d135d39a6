"""Recorded ways: jumps that no record could have made end before what is in the way, and values are those of the world.

A corridor with a wall in its middle, of which the models know nothing: their policies walk through. The records do.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import floyd_warshall

import corridor
import ggpi
from ggpi import GGPIAgent, jumpy_graph, rewards
from ggpi.data.transitions import Transitions, numbered
from ggpi.planning import ways
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.landmarks import atlas_of
from ggpi.planning.ways import longest_jump, moved, recorded_edges, ways_of

KEY = jax.random.key(0)
WALL, LENGTH = 100, corridor.LENGTH
REWARD = rewards.arrival(corridor.HILLS)
SIZES = {"num_landmarks": LENGTH, "num_jumps": 64, "num_neighbours": 1}


def stopped(place, moves):
    """Where moves [..., n] from places lead, which a wall or an end stops."""
    low = np.where(place < WALL, 0, WALL)
    return np.clip(place + moves, low, low + WALL - 1)


def records() -> Transitions:
    """Every step of the corridor with its wall, once."""
    state, action = np.repeat(np.arange(LENGTH), 2), np.tile([-1, 1], LENGTH)
    columns = (part[:, None].astype(np.float32) for part in (state, action, stopped(state, action)))
    none = np.zeros(len(state), bool)
    episode, step = numbered(~none)
    return Transitions(*columns, none, ~none, np.tile([0, 1], LENGTH), episode, step)


@pytest.fixture(scope="module")
def graph():
    return jumpy_graph(corridor.models(), records(), **SIZES, key=KEY)


def exact() -> np.ndarray:
    """V of the closed loop, from the finite MDP with the wall."""
    place = np.arange(LENGTH)[:, None]
    mdp = ggpi.TabularMDP(np.eye(LENGTH)[stopped(place, np.array([-1, 1]))])
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    table = np.array([float(corridor.HILLS(np.array([p], np.float32))) for p in range(LENGTH)])
    ghms = ggpi.exact_ghms(mdp, policies, corridor.GAMMA, corridor.ALPHA)
    return ggpi.evaluate_closed_loop(ghms, rewards.arrival(table)).v.max(axis=0)


def test_jumps_end_where_the_wall_stops_them(graph):
    """Jumps through the wall end before it, those of more than L steps after L, and all others stay."""
    along = graph.along(records())
    begin = graph.landmarks[None, :, None, 0]
    moves = graph.jumps.end[..., 0] - begin
    longest = longest_jump(graph.beta)
    expected = stopped(begin, np.clip(moves, -longest, longest))
    np.testing.assert_allclose(along.jumps.end[..., 0], expected, atol=1e-4)
    assert (along.jumps.end != graph.jumps.end).any()
    nearest = along.landmarks[along.jumps.neighbour[..., 0]][..., 0]
    np.testing.assert_allclose(nearest, expected, atol=1e-4, err_msg="V is that of where they end")
    np.testing.assert_array_equal(along.jumps.share, 1 / 64)


def test_values_are_those_of_the_world_though_models_know_no_wall(graph):
    """Sixty-four jumps of each policy err by a few percent; the wall, by more than half of V."""
    along, truth = graph.along(records()), exact()
    order = np.argsort(graph.landmarks[:, 0])
    errors = [np.abs(g.solve(REWARD)[order] / truth - 1).max() for g in (graph, along)]
    assert errors[0] > 0.4 and errors[1] < 0.15
    for place in (60, 97, 110):
        state, found = np.array([place], np.float32), []
        for built in (graph, along):
            agent = GGPIAgent(corridor.models(), REWARD, depth="inf", graph=built, num_samples=2_000)
            found.append(agent.plan(state, key=KEY).value.max() / truth[place] - 1)
        assert abs(found[1]) < 0.15, place
        assert abs(found[0]) > 0.3 or place != 97


def test_jumps_into_terminal_states_stay():
    """The walk to the right ends beyond 194, where no landmarks are; recorded ways change none of its jumps."""
    ghms, found = corridor.models(), []
    terminal = {"terminal": lambda state: state[0] >= 195}
    graph = jumpy_graph(
        ghms, records(), **SIZES | {"num_landmarks": 195, "num_jumps": 4}, **terminal, key=KEY
    )
    along = graph.along(records())
    for built in (graph, dataclasses.replace(graph, ways=along.ways)):  # the same V
        agent = GGPIAgent(ghms, REWARD, depth="inf", graph=built, num_samples=200, **terminal)
        found.append(np.ravel(agent.plan(np.array([190], np.float32), key=KEY).value)[1])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def test_a_jump_is_longer_than_l_once_in_a_thousand():
    for beta in (0.2, 0.5, 0.9, 0.99):
        assert beta ** longest_jump(beta) <= 1e-3 < beta ** (longest_jump(beta) - 1)
    assert longest_jump(0.0) == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("longest", [1, 3])
def test_ways_are_chains_of_at_most_so_many_steps(seed, longest):
    rng = np.random.default_rng(seed)
    begin, end, steps = rng.integers(30, size=(3, 60))
    steps = 1 + steps % 3
    found = ways_of(np.arange(30.0)[:, None], begin, end, steps, longest)
    table = np.full((30, 30), math.inf)
    np.minimum.at(table, (begin, end), steps)
    np.testing.assert_array_equal(found.connected, floyd_warshall(table) <= longest)
    np.testing.assert_array_equal(found.anchor, np.arange(30))


def test_stretches_do_not_cross_episodes():
    """Episodes of 6, 2 and 3 steps in stretches of three; L of a jump is seven of its stretches."""
    data = records()[np.arange(11)]
    episode = np.repeat([0, 1, 2], [6, 2, 3])
    step = np.concatenate([np.arange(6), np.arange(2), np.arange(3)])
    none = np.zeros(11, bool)
    data = dataclasses.replace(data, truncated=none, episode=episode, step=step)
    first, last, steps = recorded_edges(data, 21)
    assert first.tolist() == [0, 1, 2, 3, 6, 8] and steps.tolist() == [3, 3, 3, 3, 2, 3]
    assert last.tolist() == [2, 3, 4, 5, 7, 10]
    cut = dataclasses.replace(data, truncated=np.arange(11) == 2)
    assert recorded_edges(cut, 21)[0].tolist() == [0, 3, 6, 8]


def test_many_landmarks_share_anchors(monkeypatch):
    """Ten anchors for 200 landmarks: each has the nearest one, and ways between them join what the steps join."""
    monkeypatch.setattr(ways, "MOST_ANCHORS", 10)
    points = np.arange(200.0)[:, None]
    found = ways_of(points, np.arange(199), np.arange(1, 200), np.ones(199, int), 1)
    assert found.connected.shape == (10, 10) and len(set(found.anchor)) == 10
    assert (np.diff(found.anchor) != 0).sum() == 9, "neighbours share an anchor"
    order = found.anchor[np.append(True, np.diff(found.anchor) != 0)]
    expected = np.eye(10, dtype=bool) | np.eye(10, k=1, dtype=bool)
    np.testing.assert_array_equal(found.connected[np.ix_(order, order)], expected)


def test_ends_out_of_reach_move_and_coordinates_that_do_not_count_stay():
    """Three landmarks, the last of which no way from the others leads to; the second coordinate does not count."""
    landmarks = np.array([[0.0, 7.0], [1.0, 7.0], [3.0, 7.0]], np.float32)
    atlas = dataclasses.replace(
        atlas_of(landmarks, np.array([1.0, 1e9]), 0.5, 1),
        anchor=jnp.arange(3),
        connected=jnp.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool),
    )
    ends = jnp.array([[0.4, 1.0], [1.8, 2.0], [2.9, 3.0], [2.9, 4.0]])
    found = moved(atlas, ends, jnp.array([0, 0, 1, 2]))
    np.testing.assert_allclose(found, [[0.4, 1], [1, 2], [1, 3], [2.9, 4]], atol=1e-5)
    with pytest.raises(ValueError, match=r"graph\.along"):
        moved(dataclasses.replace(atlas, connected=None), ends, jnp.arange(4))


def test_ways_have_a_direction():
    """A one-way street: from 0 to 1, but not back."""
    atlas = dataclasses.replace(
        atlas_of(np.array([[0.0], [1.0]], np.float32), np.ones(1), 0.5, 1),
        anchor=jnp.arange(2),
        connected=jnp.array([[True, True], [False, True]]),
    )
    found = moved(atlas, jnp.array([[1.0], [0.0]]), jnp.array([0, 1]))
    np.testing.assert_allclose(found, [[1.0], [1.0]], atol=1e-6)


def test_ways_are_saved(tmp_path, graph):
    along = graph.along(records())
    ggpi.save(tmp_path / "graph", along)
    again = ggpi.load(tmp_path / "graph")
    np.testing.assert_array_equal(again.ways.connected, along.ways.connected)
    np.testing.assert_array_equal(again.solve(REWARD), along.solve(REWARD))


def test_other_data(graph):
    with pytest.raises(TypeError, match="recorded Transitions, got ndarray"):
        getattr(JumpyGraph.along, "__wrapped__", JumpyGraph.along)(
            graph, records().state
        )  # beneath the check of types that tests run with
    data = records()
    wide = dataclasses.replace(data, state=np.tile(data.state, 2), next_state=np.tile(data.next_state, 2))
    with pytest.raises(ValueError, match=r"have the shape \(2,\), landmarks \(1,\)"):
        graph.along(wide)
