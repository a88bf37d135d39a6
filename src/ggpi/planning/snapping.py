"""Where jumps end, in terms of landmarks: the nearest ones, what each jump counts, and the weights of V there."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.spatial import KDTree

from ggpi._jax.jit import fast_jit
from ggpi.planning.landmarks import Points, interpolation, shares
from ggpi.planning.ways import Ways, by_ways


def snapped(
    ends: Points,
    ended: Bool[np.ndarray, "K M n"],
    landmarks: KDTree,
    reach: float,
    num_neighbours: int,
    ways: Ways | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`share`, `distance`, `neighbour` and `weight` of jumps, as in `Jumps`.

    Args:
        ends: where they end [K·M·n, d], in units of the data.
        ended: whether the end is a terminal state.
        landmarks: the landmarks.
        reach: jumps that end farther from all landmarks are left out.
        num_neighbours: landmarks that V is interpolated from.
        ways: what recorded transitions connect, where it is known; the jumps are then those of all landmarks in order.
    """
    apart, rows = landmarks.query(ends, k=num_neighbours, workers=-1)
    apart = np.asarray(apart, np.float32).reshape(*ended.shape, num_neighbours)
    rows = np.asarray(rows, np.int32).reshape(apart.shape)
    nearest = apart[..., 0]
    if ways is not None:
        origin = np.arange(ended.shape[1])[:, None, None]
        rows, apart = map(np.asarray, _led(ways.anchor, ways.connected, origin, rows, apart))
    share, weight = _weighed(apart, ended, jnp.asarray(reach, jnp.float32))
    return np.asarray(share), nearest, rows, np.asarray(weight)


@fast_jit
def _weighed(
    apart: Array, ended: Array, reach: Array
) -> tuple[Float[Array, "K M n"], Float[Array, "K M n m"]]:
    share = shares(jnp.where(ended, 0.0, apart[..., 0]), reach)
    return share, jnp.where(ended, 0.0, share)[..., None] * interpolation(apart)


@fast_jit
def _led(
    anchor: Array, connected: Array, origin: Array, rows: Array, apart: Array
) -> tuple[Int[Array, "K M n m"], Float[Array, "K M n m"]]:
    return by_ways(anchor, connected, origin, rows, apart)
