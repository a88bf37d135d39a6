"""`python docs/figures/antmaze_clip.py DIR` films an episode of `ggpi run ogbench-mazes --maze antmaze-…` as WebP.

DIR is the directory of the run. Its models are those of the cache, or trained now.
"""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

import os
import sys
from dataclasses import fields
from pathlib import Path

os.environ.setdefault("MUJOCO_GL", "egl")  # before MuJoCo is imported

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from PIL import Image

from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab import style
from ggpi.lab.contract import read_results
from ggpi.lab.maze.value_maps import draw_maze
from ggpi.lab.ogbench import mazes
from ggpi.lab.ogbench.episodes import REPORTED, play

HERE = Path(__file__).parent
SIZE = 300
"""Pixels of each of the two squares."""
EVERY = 5
"""Steps between two pictures."""


def maps(metrics: dict, path: np.ndarray) -> list[np.ndarray]:
    """V of the landmarks, the goal, and the path so far, at each place of a path."""
    picture = metrics["picture"]
    canvas, ax = plt.subplots(figsize=(SIZE / 100, SIZE / 100), dpi=100, layout="constrained")
    draw_maze(ax, *(np.array(metrics[name]) for name in ("free", "low", "high")))
    ax.scatter(*np.array(picture["landmarks"]).T, c=picture["values"], s=2, cmap="viridis", linewidths=0)
    ax.add_patch(plt.Circle(picture["target"], 1.2, fill=False, edgecolor=style.RED, linewidth=2))
    (line,), (dot,) = (
        ax.plot([], [], "-", color=style.RED),
        ax.plot([], [], "o", color=style.RED, markersize=5),
    )
    found = []
    for t in range(len(path)):
        line.set_data(*path[: t + 1].T)
        dot.set_data(*path[t : t + 1].T)
        canvas.canvas.draw()
        found.append(np.asarray(canvas.canvas.buffer_rgba())[..., :3].copy())
    plt.close(canvas)
    return found


def views(world: OGBenchMaze, states: np.ndarray) -> list[np.ndarray]:
    """The ant from above and behind, at each state."""
    model, camera = world.body.model, mujoco.MjvCamera()
    data, renderer = mujoco.MjData(model), mujoco.Renderer(model, SIZE, SIZE)
    camera.distance, camera.elevation, camera.azimuth = 13.0, -55.0, 90.0
    found = []
    for state in states:
        data.qpos[:], data.qvel[:] = state[: model.nq], state[model.nq :]
        mujoco.mj_forward(model, data)
        camera.lookat[:] = *state[:2], 0.5
        renderer.update_scene(data, camera)
        found.append(renderer.render().copy())
    renderer.close()
    return found


def clip(out: Path, world: OGBenchMaze, metrics: dict, states: np.ndarray) -> None:
    """Map and view side by side."""
    some = states[::EVERY]
    both = zip(maps(metrics, some[:, :2]), views(world, some), strict=True)
    pictures = [Image.fromarray(np.concatenate([left[:SIZE, :SIZE], right], axis=1)) for left, right in both]
    pictures[0].save(
        out, save_all=True, append_images=pictures[1:], duration=60, loop=0, quality=45, method=4
    )


def main() -> None:
    about, metrics = read_results(Path(sys.argv[1]))
    known = {field.name for field in fields(mazes.Config)}
    given = {name: value for name, value in about["config"].items() if name in known}
    config = mazes.Config(**given | {"others": tuple(given["others"])})
    world = OGBenchMaze(config.maze)
    (one,) = play(world, mazes.closed_loop(config, 0), [1], 1, REPORTED + 500 + config.seed, **config.playing)
    clip(HERE / f"{config.maze}.webp", world, metrics, one.states)


if __name__ == "__main__":
    main()
