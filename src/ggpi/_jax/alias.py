"""Rows of categorical distributions, sampled in constant time by Walker's alias method.

Every cell j of a row of n has probability 1/n to be hit; it then stands for itself with
probability `keep[j]` and for `alias[j]` otherwise. One uniform number decides both: the integer
part of n·u is the cell, the fraction is compared with `keep`.

The uniform numbers use both words of every round of Threefry, of which `jax.random` uses one.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi._jax.random import threefry
from ggpi._jax.shapes import Lead, check_shape
from ggpi.types import Key


class AliasTable(eqx.Module):
    """Draws from row i of a matrix of distributions at the cost of two look-ups."""

    keep: Float[Array, "*rows n"]
    alias: Int[Array, "*rows n"]

    def check_parts(self, lead: Lead) -> None:
        """Shares are probabilities, and aliases are places in the row."""
        check_shape("alias", self.alias, self.keep.shape)
        keep, alias = np.asarray(self.keep), np.asarray(self.alias)
        if keep.ndim < 2 or not ((keep >= 0) & (keep <= 1) & (alias >= 0) & (alias < keep.shape[-1])).all():
            raise ValueError("keep and alias are not a table of probabilities and places")

    def sample(self, row: Int[Array, "*batch"], *, key: Key) -> Int[Array, "*batch"]:
        """One draw for each entry of `row`, all from one key."""
        size = self.keep.shape[-1]
        place = uniform(key, jnp.shape(row)) * size
        cell = jnp.minimum(place.astype(jnp.int32), size - 1)
        entry = row * size + cell
        kept = place - cell < self.keep.ravel()[entry]
        return jnp.where(kept, cell, self.alias.ravel()[entry])


def alias_table(rows: np.ndarray) -> AliasTable:
    """The alias table of distributions [n_rows, n].

    Sorts each row, then pairs its smallest cell with its largest until all are full; all rows at once.
    """
    num_rows, size = rows.shape
    start = np.arange(num_rows) * size
    order = (np.argsort(rows, axis=1) + start[:, None]).ravel()
    mass = rows.ravel()[order] * size
    keep, alias = np.ones(rows.size, np.float32), np.arange(rows.size, dtype=np.int32)
    low, high = start.copy(), start + size - 1
    cell, amount = order[low], mass[low]
    giver, spare = order[high], mass[high]
    for _ in range(size - 1):
        keep[cell], alias[cell] = amount, giver
        spare = spare + amount - 1
        emptied = spare < 1
        low, high = low + ~emptied, high - emptied
        cell, amount = np.where(emptied, giver, order[low]), np.where(emptied, spare, mass[low])
        giver, spare = order[high], np.where(emptied, mass[high], spare)
    keep[cell] = 1.0
    keep = np.clip(keep, 0, 1).reshape(rows.shape)
    return AliasTable(jnp.asarray(keep), jnp.asarray(alias.reshape(rows.shape) % size))


def uniform(key: Key, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Numbers k/2²⁴ in [0, 1), of any shape, from a typed key of any kind."""
    count = math.prod(shape)
    counter = jnp.arange((count + 1) // 2, dtype=jnp.uint32)
    words = jnp.concatenate(threefry(jax.random.bits(key, (2,)), counter, jnp.zeros_like(counter)))
    return (words[:count].reshape(shape) >> 8).astype(jnp.float32) * 2.0**-24
