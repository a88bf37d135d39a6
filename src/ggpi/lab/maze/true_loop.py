"""The closed loop with simulated jumps in the place of models: the score of perfect models."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import KDTree

from ggpi.envs.maze import PointMaze
from ggpi.lab import agents
from ggpi.lab.maze import tasks as maze
from ggpi.lab.maze.closed_loop_models import policies
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.landmarks import interpolation, points_of, shares
from ggpi.policies.bank import PolicyBank
from ggpi.rewards import target
from ggpi.rollout.futures import simulate_futures
from ggpi.types import Key


def true_graph(graph: JumpyGraph, world: PointMaze, seed: int) -> JumpyGraph:
    """The same landmarks with simulated jumps, for arrival rewards."""
    starts = np.repeat(graph.landmarks, graph.jumps.end.shape[2], axis=0)
    end = true_jumps(world, starts, graph.beta, seed).reshape(graph.jumps.end.shape)
    tree = KDTree(points_of(graph.landmarks, graph.units))
    found = tree.query(points_of(end, graph.units), k=graph.num_neighbours, workers=-1)
    apart, neighbour = (np.reshape(part, graph.jumps.neighbour.shape) for part in found)
    share = np.asarray(shares(jnp.asarray(apart[..., 0]), graph.reach))
    weight = share[..., None] * np.asarray(interpolation(jnp.asarray(apart)))
    jumps = replace(
        graph.jumps, end=end, share=share, distance=apart[..., 0], neighbour=neighbour, weight=weight
    )
    return replace(graph, jumps=jumps)


def true_jumps(world: PointMaze, states: np.ndarray, beta: float, seed: int) -> np.ndarray:
    """Simulated ends [K, N, 4] of a jump of every policy from each state."""
    found = []
    for k, policy in enumerate(policies()):
        actions = agents.sample_policy(PolicyBank([policy]), states.astype(np.float32), jax.random.key(seed))
        found.append(simulate_futures(world, policy, states, np.asarray(actions), beta, seed=seed + k))
    return np.stack(found)


def true_loop(world: PointMaze, graph: JumpyGraph, num_samples: int) -> agents.Decide:
    """The closed loop with the simulator instead of models, for a graph of true jumps."""
    bank, solved = PolicyBank(policies()), dict[bytes, np.ndarray]()

    def decide(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        seed = int(jax.random.bits(key, dtype=np.uint32))
        starts = np.repeat(states.astype(np.float32), num_samples, axis=0)
        end = true_jumps(world, starts, graph.beta, seed)
        rows, apart = graph.atlas.nearest(end.reshape(-1, 4))
        rows, weights = np.asarray(rows), np.asarray(interpolation(apart))
        for goal in goals:
            if goal.tobytes() not in solved:
                solved[goal.tobytes()] = graph.solve(target(goal, maze.RADIUS))
        v = np.stack([solved[goal.tobytes()] for goal in goals])
        row = np.tile(np.repeat(np.arange(len(states)), num_samples), len(bank))
        after = (weights * v[row[:, None], rows]).sum(axis=1)
        hit = np.linalg.norm(end.reshape(-1, 4)[:, :2] - goals[row], axis=1) <= maze.RADIUS
        value = hit / (1 - graph.beta) + graph.discount * after
        best = value.reshape(len(bank), len(states), num_samples).mean(axis=2).argmax(axis=0)
        return np.asarray(agents.sample_bank(bank, best, states, key))

    return decide
