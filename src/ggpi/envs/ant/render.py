"""Pictures of the ant without a screen: by EGL, else by OSMesa, else a message that says what is missing."""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from importlib import import_module
from typing import Any

import mujoco
import numpy as np

from ggpi.envs import opengl
from ggpi.envs.ant import physics

GREEN = np.array([0.13, 0.53, 0.2, 0.8], np.float32)


class Camera:
    """Follows the ant from behind and above; shadows, reflections and multisampling are off, which is quick."""

    def __init__(self, width: int = 480, height: int = 360, distance: float = 7.0):
        model = physics.model()
        self._context = open_context(width, height)
        self._pixels = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._pixels)
        self._scene = mujoco.MjvScene(model, maxgeom=200)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = False
        self._frame = mujoco.MjrRect(0, 0, width, height)
        self._view = mujoco.MjvCamera()
        self._view.distance, self._view.elevation, self._view.azimuth = distance, -40.0, 90.0

    def picture(self, data: Any, target: np.ndarray | None = None, radius: float = 0.5) -> np.ndarray:
        """What the world looks like, [height, width, 3] bytes: +x to the right, the target a green disc."""
        self._context.make_current()
        mujoco.mj_forward(physics.model(), data)
        self._view.lookat[:] = data.qpos[:3]
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        option = mujoco.MjvOption()
        mujoco.mjv_updateScene(physics.model(), data, option, None, self._view, everything, self._scene)
        if target is not None:
            self._disc(target, radius)
        mujoco.mjr_render(self._frame, self._scene, self._pixels)
        picture = np.empty((self._frame.height, self._frame.width, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, self._frame, self._pixels)
        return picture[::-1].copy()

    def _disc(self, target: np.ndarray, radius: float) -> None:
        size, place = np.array([radius, radius, 0.005]), np.array([*target, 0.005])
        kind = mujoco.mjtGeom.mjGEOM_CYLINDER
        geom = self._scene.geoms[self._scene.ngeom]
        mujoco.mjv_initGeom(geom, kind, size, place, np.eye(3).ravel(), GREEN)
        self._scene.ngeom += 1

    def close(self) -> None:
        """Frees the graphics memory."""
        self._context.make_current()
        self._pixels.free()
        self._context.free()


def open_context(width: int, height: int) -> Any:
    """An OpenGL context of the kind in MUJOCO_GL, else of the first kind that is installed."""
    kind = opengl.choose()
    try:
        if not kind:
            raise OSError("neither the library EGL nor OSMesa was found")
        context = import_module(f"mujoco.{kind}").GLContext(width, height)
        context.make_current()
        return context
    except Exception as error:  # each GL library fails in its own way
        raise RuntimeError(opengl.MISSING.format(why=" ".join(str(error).split()))) from error
