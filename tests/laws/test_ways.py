"""Recorded ways: jumps that no record could have made are left out, all others stay, and values are those of the world.

A corridor with a wall in its middle, that no policy passes. Models leak: some of their jumps end beyond it.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import ndtr
from scipy.sparse.csgraph import floyd_warshall

import corridor
import ggpi
from ggpi import GGPIAgent, jumpy_graph, rewards
from ggpi._jax.batching import stack
from ggpi.data.transitions import Transitions, numbered
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.coordinates import Frame
from ggpi.planning import ways
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.ways import by_ways, longest_jump, ways_of

KEY = jax.random.key(0)
WALL, LENGTH = 100, corridor.LENGTH
REWARD = rewards.arrival(corridor.HILLS)
SIZES = {"num_landmarks": LENGTH, "num_jumps": 64, "num_neighbours": 1}


class Leaky(AbstractGHM):
    """μ_β of a walk that the wall stops, but for a share of the jumps, which end at the mirrored place beyond it."""

    frame: Frame
    beta: jnp.ndarray
    leak: jnp.ndarray

    @property
    def noise_size(self):
        return 2

    @property
    def loss_noise_size(self):
        return 0

    def push(self, state, action, noise):
        steps = 1 + jnp.floor(jnp.log(ndtr(noise[0])) / jnp.log(self.beta))
        low = jnp.where(state[0] < WALL, 0, WALL)
        place = jnp.clip(state[0] + jnp.sign(action[0]) * steps, low, low + WALL - 1)
        return jnp.where(ndtr(noise[1]) < self.leak, LENGTH - 1 - place, place)[None]

    def loss(self, state, action, target, noise):
        return jnp.zeros(len(state))


def models(leak: float) -> GHMs:
    ghms = corridor.models()
    frame = jax.tree.map(lambda leaf: leaf[0], ghms.models[0]).frame
    stacks = tuple(
        stack([Leaky(frame, jnp.float32(beta), jnp.float32(leak))] * 2)
        for beta in (ghms.gamma, ghms.horizon(corridor.ALPHA))
    )
    return dataclasses.replace(ghms, models=stacks)


def records() -> Transitions:
    """Every step of the corridor with its wall, once."""
    state = np.repeat(np.arange(LENGTH), 2)
    action = np.tile([-1, 1], LENGTH)
    low = np.where(state < WALL, 0, WALL)
    following = np.clip(state + action, low, low + WALL - 1)
    column = (part[:, None].astype(np.float32) for part in (state, action, following))
    none = np.zeros(len(state), bool)
    episode, step = numbered(~none)
    return Transitions(*column, none, ~none, np.tile([0, 1], LENGTH), episode, step)


def exact() -> np.ndarray:
    """V of the closed loop, from the finite MDP with the wall."""
    low = np.where(np.arange(LENGTH) < WALL, 0, WALL)[:, None]
    P = np.eye(LENGTH)[np.clip(np.arange(LENGTH)[:, None] + [-1, 1], low, low + WALL - 1)]
    mdp = ggpi.TabularMDP(P)
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    table = np.array([float(corridor.HILLS(np.array([p], np.float32))) for p in range(LENGTH)])
    ghms = ggpi.exact_ghms(mdp, policies, corridor.GAMMA, corridor.ALPHA)
    return ggpi.evaluate_closed_loop(ghms, rewards.arrival(table)).v.max(axis=0)


def ordered(graph, values):
    return values[np.argsort(graph.landmarks[:, 0])]


def test_true_jumps_stay():
    """A model that does not leak jumps where records lead, but for one jump in a thousand that is longer than L.

    These lead nowhere else: the wall or an end stops them within L steps, or they are longer than half of the corridor.
    """
    graph = jumpy_graph(models(0.0), records(), **SIZES, key=KEY)
    along = graph.along(records())
    length = np.abs(graph.jumps.end[..., 0] - graph.landmarks[None, :, None, 0])
    np.testing.assert_array_equal(along.jumps.share > 0, length <= longest_jump(graph.beta))
    kept = (length <= longest_jump(graph.beta)).all(axis=2)
    np.testing.assert_array_equal(along.jumps.distance, graph.jumps.distance)
    for name in ("share", "neighbour", "weight"):
        np.testing.assert_array_equal(getattr(along.jumps, name)[kept], getattr(graph.jumps, name)[kept])


def test_values_are_those_of_the_world_though_models_leak():
    """A tenth of the jumps leaks. Sixty-four jumps of each policy err by a few percent; leaks, by a fifth of V."""
    leaky = models(0.1)
    graph = jumpy_graph(leaky, records(), **SIZES, key=KEY)
    along, truth = graph.along(records()), exact()
    beyond = (along.jumps.end[..., 0] < WALL) != (along.landmarks[None, :, None, 0] < WALL)
    assert beyond.any() and not along.jumps.share[beyond].any()
    errors = [np.abs(ordered(g, g.solve(REWARD)) / truth - 1) for g in (graph, along)]
    assert errors[0].max() > 0.2 > 2 * errors[1].max()
    states = np.array([[30.0], [90.0], [110.0]], np.float32)
    for built, near in ((graph, False), (along, True)):
        agent = GGPIAgent(leaky, REWARD, depth="inf", graph=built, num_samples=2_000)
        found = np.array([agent.plan(state, key=KEY).value.max() for state in states])
        assert (np.abs(found / truth[states[:, 0].astype(int)] - 1).max() < 0.1) == near


def test_a_jump_is_longer_than_l_once_in_a_thousand():
    for beta in (0.2, 0.5, 0.9, 0.99):
        assert beta ** longest_jump(beta) <= 1e-3 < beta ** (longest_jump(beta) - 1)
    assert longest_jump(0.0) == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("longest", [1, 3])
def test_ways_are_chains_of_at_most_so_many_steps(seed, longest):
    rng = np.random.default_rng(seed)
    begin, end = rng.integers(30, size=(2, 40))
    found = ways_of(np.arange(30.0)[:, None], begin, end, longest)
    steps = np.full((30, 30), math.inf)
    steps[begin, end] = 1
    np.testing.assert_array_equal(found.connected, floyd_warshall(steps) <= longest)
    np.testing.assert_array_equal(found.anchor, np.arange(30))


def test_many_landmarks_share_anchors(monkeypatch):
    """Ten anchors for 200 landmarks: each has the nearest one, and ways between them join what the steps join."""
    monkeypatch.setattr(ways, "MOST_ANCHORS", 10)
    points = np.arange(200.0)[:, None]
    found = ways_of(points, np.arange(199), np.arange(1, 200), 1)
    assert found.connected.shape == (10, 10) and len(set(found.anchor)) == 10
    assert (np.diff(found.anchor) != 0).sum() == 9, "neighbours share an anchor"
    order = found.anchor[np.append(True, np.diff(found.anchor) != 0)]
    expected = np.eye(10, dtype=bool) | np.eye(10, k=1, dtype=bool)
    np.testing.assert_array_equal(found.connected[np.ix_(order, order)], expected)


def test_neighbours_to_which_no_way_leads_are_far_away():
    anchor, connected = jnp.array([0, 0, 1]), jnp.array([[True, False], [False, True]])
    rows, apart = by_ways(
        anchor, connected, jnp.array([[0], [2]]), jnp.array([[2, 1], [0, 1]]), jnp.array([[1.0, 2], [0, 3]])
    )
    np.testing.assert_array_equal(rows, [[1, 2], [0, 1]])
    assert apart[0, 0] == 2 and (np.ravel(apart)[1:] > 1e5).all()


def test_ways_are_saved(tmp_path):
    graph = jumpy_graph(models(0.1), records(), **SIZES | {"num_jumps": 2}, key=KEY).along(records())
    ggpi.save(tmp_path / "graph", graph)
    again = ggpi.load(tmp_path / "graph")
    np.testing.assert_array_equal(again.ways.connected, graph.ways.connected)
    np.testing.assert_array_equal(again.solve(REWARD), graph.solve(REWARD))


def test_other_data():
    graph = jumpy_graph(models(0.1), records(), **SIZES | {"num_jumps": 1}, key=KEY)
    with pytest.raises(TypeError, match="recorded Transitions, got ndarray"):
        JumpyGraph.along.__wrapped__(graph, records().state)  # beneath the check of types that tests run with
    data = records()
    wide = dataclasses.replace(data, state=np.tile(data.state, 2), next_state=np.tile(data.next_state, 2))
    with pytest.raises(ValueError, match=r"have the shape \(2,\), landmarks \(1,\)"):
        graph.along(wide)
