"""Rooms with weights, places to avoid, and the weights of a tour on a line where everything is known."""

import numpy as np
import pytest

from ggpi.lab.ogbench.errand_rewards import avoiding, patrol_weights, rooms, tour_weights
from ggpi.lab.ogbench.models import GAMMA


def test_rooms_add_their_weights():
    reward = rooms(np.array([[0.0, 0.0], [1.5, 0.0], [9.0, 0.0]]), np.array([1.0, 2.0, 4.0]), 1.0)
    assert reward.form == "arrival"
    values = [float(reward.values(np.array(x, np.float32))) for x in ([0, 0], [0.75, 0], [9, 1], [5, 0])]
    assert values == [1, 3, 4, 0]


def test_a_goal_with_a_place_to_avoid():
    squares = np.array([[4.0, 0.0], [8.0, 0.0]])
    reward = avoiding(np.array([0.0, 0.0]), 1.0, squares, 2.0, 10.0)
    values = [float(reward.values(np.array(x, np.float32))) for x in ([0, 1], [3, 1.9], [9, -1], [4, 3])]
    assert values == [1, -10, -10, 0]


def line(length=21):
    """Places on a line on which each step costs one unit of time, and how rewards are solved there."""
    landmarks = np.stack([np.arange(length), np.zeros(length)], axis=1).astype(np.float32)

    def solve(reward):
        rho, v = np.array([float(reward.values(x)) for x in landmarks]), np.zeros(length)
        for _ in range(20_000):
            ahead = rho + GAMMA * v
            v, before = np.maximum(ahead, np.maximum(np.roll(ahead, 1), np.roll(ahead, -1))), v
            v[[0, -1]] = np.maximum(ahead[[0, -1]], ahead[[1, -2]])
            if np.abs(v - before).max() < 1e-9:
                break
        return v

    return landmarks, solve


def test_the_value_of_a_tour_is_that_of_its_shortest_time():
    """Rooms at 2, 10 and 18: from 10 on, both others are 24 steps away; from an end, 16."""
    places = np.array([[2.0, 0.0], [10.0, 0.0], [18.0, 0.0]])
    weights = tour_weights(*line(), places, 0.5)
    assert len(weights) == 7
    whole = weights[True, True, True] / (1 - GAMMA)
    np.testing.assert_allclose(whole, [GAMMA**16, GAMMA**24, GAMMA**16], rtol=0.02)
    np.testing.assert_allclose(weights[True, False, True] / (1 - GAMMA), [GAMMA**16, 0, GAMMA**16], rtol=0.02)
    assert weights[False, True, False] / (1 - GAMMA) == pytest.approx([0, 1, 0])


def machine(places, length):
    """V of each memory [rooms, places] of the world in which a patrol remembers which room is next, step by step."""
    v, at = np.zeros((len(places), length)), np.arange(length)
    for _ in range(20_000):
        before = v
        following = np.roll(before, -1, axis=0)
        entered = [
            np.where(at == room, 1 + GAMMA * following[i], GAMMA * before[i]) for i, room in enumerate(places)
        ]
        ahead = np.array(entered)
        left, right = ahead[:, np.maximum(at - 1, 0)], ahead[:, np.minimum(at + 1, length - 1)]
        v = np.maximum(ahead, np.maximum(left, right))
        if np.abs(v - before).max() < 1e-10:
            break
    return v


@pytest.mark.parametrize("stops", [(2, 10), (3, 4), (18, 2, 10)])
def test_a_patrol_is_that_of_a_world_which_remembers_the_next_room(stops):
    """On a line where one may stay, V of the patrol's rewards is the optimum of the world with memory, everywhere."""
    landmarks, solve = line()
    places = np.array([[stop, 0.0] for stop in stops])
    weights = patrol_weights(landmarks, solve, places, 0.5)
    optimum = machine(stops, len(landmarks))
    for i in range(len(stops)):
        own = solve(rooms(places, weights * (np.arange(len(stops)) == i), 0.5))
        np.testing.assert_allclose(own, optimum[i], rtol=1e-3)


def test_a_patrol_between_neighbours_is_a_geometric_sum():
    """Rooms one step apart: a visit in every step, 1/(1−γ) together, from the first one on."""
    weights = patrol_weights(*line(), np.array([[3.0, 0.0], [4.0, 0.0]]), 0.5)
    np.testing.assert_allclose(weights, 1.0, rtol=1e-3)
