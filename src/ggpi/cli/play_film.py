"""`ggpi play … --video FILE.mp4`: pictures of the environment, one after each step."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import numpy as np

from ggpi.envs import opengl
from ggpi.lab.film import film
from ggpi.lab.fit_directory import World

Add = Callable[[gymnasium.Env], None]


@contextlib.contextmanager
def filming(world: World, video: Path | None) -> Iterator[tuple[gymnasium.Env, Add]]:
    """The environment, and what adds its picture to the film."""
    if video is None:
        env = world.make()
        try:
            yield env, lambda env: None
        finally:
            env.close()
        return
    if kind := opengl.choose():
        os.environ.setdefault("MUJOCO_GL", kind)  # before MuJoCo is imported
    _check_video(world, video)
    env = world.make(render_mode="rgb_array")
    try:
        with film(video, env.metadata.get("render_fps") or 16) as add:
            yield env, lambda env: add(_picture(env))
    finally:
        env.close()


def _check_video(world: World, video: Path) -> None:
    """Before the first step: can this world be filmed?"""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise ModuleNotFoundError("--video needs an extra: pip install '.[video]' in the checkout") from error
    env = world.make()
    modes = env.metadata.get("render_modes") or []
    env.close()
    if "rgb_array" not in modes:
        raise ValueError(f"{world.env} cannot be filmed: it has no rgb_array among its render modes {modes}")
    video.parent.mkdir(parents=True, exist_ok=True)


def _picture(env: gymnasium.Env) -> np.ndarray:
    """A picture of the environment; each graphics library fails in its own way."""
    name = env.spec.id if env.spec else str(env)
    try:
        return np.asarray(env.render())
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(
            f"no picture of {name}: {error}; most need pygame, which pip install '.[video]' in the checkout brings"
        ) from error
    except Exception as error:
        hint = opengl.MISSING.format(why=" ".join(str(error).split()))
        said = hint if hasattr(env.unwrapped, "mujoco_renderer") else repr(error)
        raise ValueError(f"no picture of {name}: {said}") from error
