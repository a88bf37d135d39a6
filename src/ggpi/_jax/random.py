"""JAX's random numbers, generated faster on a CPU.

On a CPU JAX runs the rounds of Threefry as a loop over whole arrays, which XLA cannot fuse with other operations.
`quick` returns a key whose draws unroll these rounds: the same numbers in a half to a quarter of the time. Keys are
still split by JAX's loop; unrolled, XLA would fuse the rounds of a key into those of its children and take minutes to
compile. Do not draw gather indices with it: XLA would recompute the draw for every gathered element.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array

from ggpi.types import Key

PLAIN = "threefry2x32"
"""JAX's default key implementation."""


def checked_key(key: Any) -> Key:
    """The key, if it is a typed key or the two words of `jax.random.PRNGKey`; else raises."""
    dtype, shape = getattr(key, "dtype", None), np.shape(key) if hasattr(key, "dtype") else ()
    is_new = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    if is_new and shape == ():
        return key
    if dtype == np.uint32 and len(shape) == 1:
        return jnp.asarray(key)
    found = f"an array of {shape[0]} keys" if is_new and shape else f"{key!r}"[:80]
    raise TypeError(f"key must be one JAX random key, such as jax.random.key(0); got {found}")


@partial(jax.jit, static_argnames="num")
def split(key: Key, num: int) -> tuple[Key, ...]:
    """`num` keys, one by one: those of `jax.random.split`, by a single call from Python."""
    return tuple(jax.random.split(key, num))


def quick(key: Key) -> Key:
    """The same key with faster draws on a CPU; keys of other implementations are returned unchanged."""
    if str(jax.random.key_impl(key)) != PLAIN:
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_UNROLLED)


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Threefry-2×32 with 20 rounds: two output words for each pair of input words."""
    keys = key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)
    x, y = x + keys[0], y + keys[1]
    for i in range(5):
        for turn in (13, 15, 26, 6) if i % 2 == 0 else (17, 29, 16, 24):
            x = x + y
            y = x ^ (y << turn | y >> 32 - turn)
        x, y = x + keys[(i + 1) % 3], y + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x, y


def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    low = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    high, low = threefry(key, jnp.zeros_like(low), low)
    if width == 64:
        return high.astype(jnp.uint64) << 32 | low
    return (high ^ low).astype(f"uint{width}")


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jax.random.key_data(jax.random.split(_plain(key), shape))


def _fold_in(key: Array, number: Any) -> Array:
    return jax.random.key_data(jax.random.fold_in(_plain(key), number))


def _seed(number: Any) -> Array:
    return jax.random.key_data(jax.random.key(number, impl=PLAIN))


def _plain(key: Array) -> Key:
    return jax.random.wrap_key_data(key, impl=PLAIN)


_UNROLLED = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="threefry2x32, unrolled",
    tag="unrolled",
)
