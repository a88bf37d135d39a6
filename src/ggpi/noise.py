"""Random numbers on a CPU: JAX's own, made in a way that XLA can fuse with what uses them.

JAX runs the rounds of Threefry as a loop over whole arrays on a CPU, which XLA can fuse with nothing. `quick`
gives a key whose rounds are written out: every draw of `jax.random` takes a half to a quarter of the time and
gives the same numbers. It is not for indices: what XLA fuses is made again for every number that is gathered.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array

from ggpi.typing import Key


def quick(key: Key) -> Key:
    """The same key, whose draws take less time on a CPU; keys of other kinds than JAX's default stay as they are.

    Beyond the paper: noise in bulk, fast on a CPU
    """
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_WRITTEN_OUT)


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Threefry-2×32 with 20 rounds: two words for each pair of words.

    Beyond the paper: Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3
    """
    keys = key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)
    x, y = x + keys[0], y + keys[1]
    for i in range(5):
        for turn in (13, 15, 26, 6) if i % 2 == 0 else (17, 29, 16, 24):
            x = x + y
            y = x ^ (y << turn | y >> 32 - turn)
        x, y = x + keys[(i + 1) % 3], y + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x, y


def _count(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The words of 0, 1, 2, … in an array of a shape."""
    low = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return threefry(key, jnp.zeros_like(low), low)


def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    high, low = _count(key, shape)
    if width == 64:
        return high.astype(jnp.uint64) << 32 | low
    return (high ^ low).astype(f"uint{width}")


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(_count(key, shape), axis=-1)


def _fold_in(key: Array, number: Any) -> Array:
    return jnp.stack(threefry(key, *_seed(number)))


def _seed(number: Any) -> Array:
    return jnp.stack([jnp.zeros((), jnp.uint32), jnp.asarray(number).astype(jnp.uint32)])


_WRITTEN_OUT = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="threefry2x32, written out",
    tag="written",
)
