"""What a jumpy graph knows, as a picture: V of the landmarks, and the best policy at some of them."""

from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from ggpi.agent.agent import GGPIAgent
from ggpi.envs.directions import DIAGONALS, DIRECTIONS
from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.planning import JumpyGraph

ARROWS = 300


def value_map(agent: GGPIAgent, graph: JumpyGraph, seed: int) -> Metrics:
    """Landmarks, their values for the agent's reward, and the direction of the best of eight policies at some."""
    few = np.random.default_rng(seed).permutation(len(graph.landmarks))[:ARROWS]
    found: Any = agent.plan(graph.landmarks[few], key=jax.random.key(seed))
    return {
        "landmarks": np.round(graph.landmarks[:, :2].astype(float), 3),
        "values": np.round(graph.solve(agent.reward).astype(float), 4),
        "places": np.round(graph.landmarks[few, :2].astype(float), 3),
        "headings": np.round(np.array(list((DIRECTIONS | DIAGONALS).values()))[found.best], 3),
    }


def draw_maze(ax: Axes, free: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Walls, between the lower left and the upper right corner."""
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(~free, cmap="Greys", vmin=0, vmax=2, extent=extent, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


def draw_values(ax: Axes, picture: Metrics) -> None:
    """Landmarks coloured by V, arrows, the path of an episode and its target."""
    ax.scatter(*np.array(picture["landmarks"]).T, c=picture["values"], s=5, cmap="viridis", linewidths=0)
    arrows = np.array(picture["places"]), np.array(picture["headings"])
    ax.quiver(*arrows[0].T, *arrows[1].T, scale=45, width=0.003, color=style.INK, alpha=0.7)
    ax.plot(*np.array(picture["path"]).T, "-", color=style.RED, linewidth=1.8)
    circle = Circle(picture["target"], picture["radius"], fill=False, edgecolor=style.RED, linewidth=1.8)
    ax.add_patch(circle)
    reached = f"reached in {picture['steps']} steps" if picture["steps"] else "not reached"
    ax.set_title(f"V of landmarks, best policies, and a path: {reached}", fontsize=9, color=style.INK)
