"""Where jumps end, in terms of landmarks: the nearest ones, what each jump counts, and the weights of V there."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.spatial import KDTree

from ggpi._jax.jit import fast_jit
from ggpi.planning.landmarks import Points, interpolation, shares


def snapped(
    ends: Points, ended: Bool[np.ndarray, "K M n"], landmarks: KDTree, reach: float, num_neighbours: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`share`, `distance`, `neighbour` and `weight` of jumps, as in `Jumps`.

    Args:
        ends: where they end [K·M·n, d], in units of the data.
        ended: whether the end is a terminal state.
        landmarks: the landmarks.
        reach: jumps that end farther from all landmarks are left out.
        num_neighbours: landmarks that V is interpolated from.
    """
    apart, neighbour = landmarks.query(ends, k=num_neighbours, workers=-1)
    apart = np.asarray(apart, np.float32).reshape(*ended.shape, num_neighbours)
    share, weight = _weighed(apart, ended, jnp.asarray(reach, jnp.float32))
    neighbour = np.asarray(neighbour, np.int32).reshape(apart.shape)
    return np.asarray(share), apart[..., 0], neighbour, np.asarray(weight)


@fast_jit
def _weighed(
    apart: Array, ended: Array, reach: Array
) -> tuple[Float[Array, "K M n"], Float[Array, "K M n m"]]:
    """The share of each jump, and the weights of its neighbours, from their distances [K, M, n, m]."""
    share = shares(jnp.where(ended, 0.0, apart[..., 0]), reach)
    return share, jnp.where(ended, 0.0, share)[..., None] * interpolation(apart)
