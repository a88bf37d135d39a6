"""Which OpenGL draws without a screen: EGL, else OSMesa. MuJoCo by itself tries one that needs a screen."""

from __future__ import annotations

import ctypes.util
import os
import sys

LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
MISSING = (
    "no off-screen OpenGL works here ({why}): install libegl1 or libosmesa6, or set MUJOCO_GL to egl, osmesa "
    "or glfw, whichever you have; everything but rendering works without"
)


def available() -> list[str]:
    """The off-screen kinds of OpenGL whose libraries are installed, best first."""
    if sys.platform == "darwin":
        return ["cgl"]
    return [kind for kind, library in LIBRARIES.items() if ctypes.util.find_library(library)]


def choose() -> str:
    """The kind that MUJOCO_GL names, else the first that is installed; "" if there is none."""
    return os.environ.get("MUJOCO_GL", "").lower() or next(iter(available()), "")
