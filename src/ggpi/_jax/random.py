"""Random numbers on a CPU: JAX's own, made in a way that XLA can fuse with what uses them.

JAX runs the rounds of Threefry as a loop over whole arrays on a CPU, which XLA can fuse with nothing. `quick`
gives a key whose draws have these rounds written out: they take a half to a quarter of the time and give the same
numbers. Keys are split by JAX's loop, because XLA would fuse the rounds of a key into the rounds of the keys below it
and take minutes to compile. It is not for indices: what XLA fuses is computed once per number that is gathered.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array

from ggpi.types import Key

PLAIN = "threefry2x32"
"""JAX's default kind of key."""


def checked_key(key: Any) -> Key:
    """The key, if it is one of JAX's: new style, or the two words of `jax.random.PRNGKey`."""
    dtype, shape = getattr(key, "dtype", None), np.shape(key) if hasattr(key, "dtype") else ()
    is_new = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    if is_new and shape == ():
        return key
    if dtype == np.uint32 and len(shape) == 1:
        return jnp.asarray(key)
    found = f"an array of {shape[0]} keys" if is_new and shape else f"{key!r}"[:80]
    raise TypeError(f"key is one random key of JAX, such as jax.random.key(0); got {found}")


def quick(key: Key) -> Key:
    """The same key, whose draws take less time on a CPU; keys of other kinds than JAX's default stay as they are."""
    if str(jax.random.key_impl(key)) != PLAIN:
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_WRITTEN_OUT)


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Threefry-2×32 with 20 rounds: two words for each pair of words."""
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


_WRITTEN_OUT = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="threefry2x32, written out",
    tag="written",
)
