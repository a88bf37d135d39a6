"""Categorical distributions sampled in constant time by Walker's alias method.

Each of the n cells of a row is drawn with probability 1/n. Cell j then returns j with probability `keep[j]` and
`alias[j]` otherwise. One uniform number u decides both: the integer part of n·u is the cell, and its fraction is
compared with `keep`.

`uniform` uses both words of each Threefry block, of which `jax.random` uses one.
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
    """Samples from any row of a matrix of distributions with two look-ups."""

    keep: Float[Array, "*rows n"]
    alias: Int[Array, "*rows n"]

    def check_parts(self, lead: Lead) -> None:
        """`keep` holds probabilities and `alias` holds indices of the row."""
        check_shape("alias", self.alias, self.keep.shape)
        keep, alias = np.asarray(self.keep), np.asarray(self.alias)
        if keep.ndim < 2 or not ((keep >= 0) & (keep <= 1) & (alias >= 0) & (alias < keep.shape[-1])).all():
            raise ValueError("keep must hold probabilities and alias indices of the row")

    def sample(self, row: Int[Array, "*batch"], *, key: Key) -> Int[Array, "*batch"]:
        """One draw from row `row[i]` for each entry i."""
        size = self.keep.shape[-1]
        place = uniform(key, jnp.shape(row)) * size
        cell = jnp.minimum(place.astype(jnp.int32), size - 1)
        entry = row * size + cell
        kept = place - cell < self.keep.ravel()[entry]
        return jnp.where(kept, cell, self.alias.ravel()[entry])


def alias_table(rows: np.ndarray) -> AliasTable:
    """The alias table of distributions [rows, n].

    Sorts each row, then fills its smallest cell up to 1/n from its largest until all cells are full. All rows are
    processed together: `low` and `high` point to the smallest and the largest cell left, `donor` is the largest and
    `spare` its remaining mass.
    """
    num_rows, size = rows.shape
    start = np.arange(num_rows) * size
    order = (np.argsort(rows, axis=1) + start[:, None]).ravel()
    mass = rows.ravel()[order] * size
    keep, alias = np.ones(rows.size, np.float32), np.arange(rows.size, dtype=np.int32)
    low, high = start.copy(), start + size - 1
    cell, amount = order[low], mass[low]
    donor, spare = order[high], mass[high]
    for _ in range(size - 1):
        keep[cell], alias[cell] = amount, donor
        spare = spare + amount - 1
        emptied = spare < 1
        low, high = low + ~emptied, high - emptied
        cell, amount = np.where(emptied, donor, order[low]), np.where(emptied, spare, mass[low])
        donor, spare = order[high], np.where(emptied, mass[high], spare)
    keep[cell] = 1.0
    keep = np.clip(keep, 0, 1).reshape(rows.shape)
    return AliasTable(jnp.asarray(keep), jnp.asarray(alias.reshape(rows.shape) % size))


def uniform(key: Key, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Uniform numbers k/2²⁴ in [0, 1)."""
    count = math.prod(shape)
    counter = jnp.arange((count + 1) // 2, dtype=jnp.uint32)
    words = jnp.concatenate(threefry(jax.random.bits(key, (2,)), counter, jnp.zeros_like(counter)))
    return (words[:count].reshape(shape) >> 8).astype(jnp.float32) * 2.0**-24
