"""The 35 numbers that describe the ant, and how they follow from positions and velocities.

| index | names | what |
|---|---|---|
| 0–1 | `x`, `y` | the torso's place in the plane |
| 2 | `z` | its height |
| 3–5 | `forward_x`, `forward_y`, `forward_z` | the body's x-axis in the world |
| 6–8 | `up_x`, `up_y`, `up_z` | the body's z-axis in the world; `up_z` < 0 means upside down |
| 9–16 | `hip_1`, `ankle_1`, … `hip_4`, `ankle_4` | joint angles, leg by leg |
| 17–19 | `velocity_x`, `velocity_y`, `velocity_z` | of the torso, in the world, units per second |
| 20–22 | `spin_x`, `spin_y`, `spin_z` | angular velocity in the world, radians per second |
| 23–30 | `hip_1_speed`, `ankle_1_speed`, … | joint velocities |
| 31–34 | `foot_1`, … `foot_4` | height of each foot's lowest point over the floor, 0 on touch |

Leg k stands at 45° + 90°·(k−1) from the body's x-axis. The model file turns ankles 2 and 3 the other way
round; here, and in actions, an ankle's angle grows as the leg bends down. All is a function of the physical
state, without memory. A quaternion would name each orientation twice; two axes name it once and continuously.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32

from ggpi.data import StateSpec

JOINTS = tuple(f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle"))
NAMES = (
    *("x", "y", "z"),
    *(f"{axis}_{w}" for axis in ("forward", "up") for w in "xyz"),
    *JOINTS,
    *(f"{kind}_{w}" for kind in ("velocity", "spin") for w in "xyz"),
    *(f"{joint}_speed" for joint in JOINTS),
    *(f"foot_{leg}" for leg in range(1, 5)),
)
SPEC = StateSpec(names=NAMES, relative=(0, 1), rotations=((3, 4, 5, 6, 7, 8),))
"""What models need to know: x and y are relative; the two axes form a rotation."""

INDEX = {
    "place": slice(0, 2),
    "forward": slice(3, 6),
    "up": slice(6, 9),
    "joints": slice(9, 17),
    "velocity": slice(17, 20),
    "spin": slice(20, 23),
    "joint_speeds": slice(23, 31),
    "feet": slice(31, 35),
}
"""Named groups, as in `state[..., INDEX["velocity"]]`; `SPEC.index("up_z")` finds a single number."""

SIGNS = np.array([1, 1, 1, -1, 1, -1, 1, 1.0])
"""From the model's joint angles and torques to ours."""
ANGLES = np.pi / 4 + np.pi / 2 * np.arange(4)
HIP = ANKLE = 0.2 * np.sqrt(2)
SHIN = 0.4 * np.sqrt(2)
RADIUS = 0.08


def observe(
    qpos: Float[np.ndarray, "*n 15"], qvel: Float[np.ndarray, "*n 14"]
) -> Float32[np.ndarray, "*n 35"]:
    """The 35 numbers from MuJoCo's generalised positions and velocities."""
    return _observed(qpos, qvel, np)


def observe_traced(qpos: Float[Array, "*n 15"], qvel: Float[Array, "*n 14"]) -> Float32[Array, "*n 35"]:
    """The same, as a JAX function."""
    return _observed(qpos, qvel, jnp)


def _observed(qpos: Any, qvel: Any, xp: Any) -> Any:
    axes = body_axes(qpos[..., 3:7], xp)
    joints = qpos[..., 7:] * SIGNS
    spin = xp.einsum("...ij,...i->...j", axes, qvel[..., 3:6])
    feet = (
        qpos[..., 2, None] + xp.einsum("...ki,...i->...k", feet_in_body(joints, xp), axes[..., :, 2]) - RADIUS
    )
    parts = (
        qpos[..., :3],
        axes[..., 0, :],
        axes[..., 2, :],
        joints,
        qvel[..., :3],
        spin,
        qvel[..., 6:] * SIGNS,
        feet,
    )
    return xp.concatenate(parts, axis=-1).astype(np.float32)


def body_axes(quaternion: Any, xp: Any = np) -> Any:
    """The body's three axes in the world, one per row, of quaternions [..., 4]; `xp` is NumPy or `jax.numpy`."""
    w, x, y, z = xp.moveaxis(quaternion / xp.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def feet_in_body(joints: Any, xp: Any = np) -> Any:
    """The centres of the four feet [..., 4, 3], seen from the torso, of joint angles [..., 8]."""
    hip, ankle = joints[..., 0::2], joints[..., 1::2]
    along = ANGLES + hip
    reach = ANKLE + SHIN * xp.cos(ankle)
    return xp.stack(
        (
            HIP * np.cos(ANGLES) + reach * xp.cos(along),
            HIP * np.sin(ANGLES) + reach * xp.sin(along),
            -SHIN * xp.sin(ankle),
        ),
        axis=-1,
    )
