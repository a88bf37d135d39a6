"""Several devices in one process: a batch is divided over them, and XLA adds up what they compute."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Shaped


def over_devices(batch: Shaped[Array, "M B *n"]) -> Shaped[Array, "M B *n"]:
    """The same array inside a compiled function, with B divided over all devices; everything made of it follows.

    Random numbers do not depend on the number of devices, and sums only in their rounding.
    """
    devices = jax.devices()
    if len(devices) == 1:
        return batch
    mesh = Mesh(np.array(devices), ("batch",))
    return jax.lax.with_sharding_constraint(batch, NamedSharding(mesh, PartitionSpec(None, "batch")))
