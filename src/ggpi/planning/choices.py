"""What plans are made of where they are not listed: policies or codes, and switches; and some such plans.

A plan of M segments is a row of M policies, indices or codes z of a family π(·|x, z), and M − 1 probabilities of a
switch. Its suffix of m segments is a row too: the last policy is repeated, which changes nothing.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from ggpi.types import Key


class Sequences(eqx.Module):
    """N plans of M segments, some of them equal."""

    policies: Int[Array, "N M"] | Float[Array, "N M z"]
    """Indices, or codes."""
    alphas: Float[Array, "N m"]
    """The probability of each of M − 1 switches."""
    first: Array | None = None
    """First actions [N, …]; None if the heads choose them."""

    def __len__(self) -> int:
        return len(self.policies)

    @property
    def depth(self) -> int:
        return self.policies.shape[1]

    def at(self, rows: Int[Array, "n"]) -> Sequences:
        """Some of them."""
        return jax.tree.map(lambda leaf: leaf[rows], self)

    def joined(self, others: Sequences) -> Sequences:
        """These, and others after them."""
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), self, others)

    def with_suffixes(self) -> Sequences:
        """These, then what is left of each after one switch, after two, and so on."""
        m, switch = jnp.arange(self.depth), jnp.arange(self.depth - 1)
        later = [
            Sequences(
                self.policies[:, jnp.minimum(m + skipped, self.depth - 1)],
                self.alphas[:, jnp.minimum(switch + skipped, self.depth - 2)],
            )
            for skipped in range(self.depth)
        ]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *later)


class Choices(eqx.Module):
    """The policies and switches that plans are made of."""

    codes: Float[Array, "C z"] | None
    """Codes to choose from; None for policies with indices, and for codes that depend on the state."""
    bounds: tuple[Float[Array, "z"], Float[Array, "z"]] | None
    """The least and the largest codes that the models know; None for policies with indices."""
    num_policies: int = eqx.field(static=True)
    alphas: tuple[float, ...] = eqx.field(static=True)
    """The probabilities of a switch to choose from."""
    alpha_range: tuple[float, float] | None = eqx.field(static=True)
    """The least and the largest one, where any may be chosen."""
    depth: int = eqx.field(static=True)

    def blank(self, count: int) -> Sequences:
        """Plans that stand for none."""
        shape, alphas = (count, self.depth), jnp.zeros((count, self.depth - 1))
        if self.bounds is None:
            return Sequences(jnp.zeros(shape, jnp.int32), alphas)
        return Sequences(jnp.zeros((*shape, *self.bounds[0].shape)), alphas)

    def draw(self, count: int, *, key: Key) -> Sequences:
        """Plans whose policies are drawn uniformly, as are their α's or, within a range, log α."""
        policy_key, alpha_key = jax.random.split(key)
        drawn = jax.random.randint(policy_key, (count, self.depth), 0, self.num_policies)
        policies = drawn if self.codes is None else self.codes[drawn]
        return Sequences(policies, self.draw_alphas((count, self.depth - 1), key=alpha_key))

    def draw_alphas(self, shape: tuple[int, ...], *, key: Key) -> Float[Array, "..."]:
        """Probabilities of switches."""
        if self.alpha_range is not None:
            lo, hi = jnp.log(jnp.asarray(self.alpha_range))
            drawn = jnp.exp(jax.random.uniform(key, shape, minval=lo, maxval=hi))
            return jnp.clip(drawn, *self.alpha_range)
        if not self.alphas:
            return jnp.zeros(shape)
        return jnp.asarray(self.alphas, jnp.float32)[jax.random.randint(key, shape, 0, len(self.alphas))]

    def known(self, codes: Num[Array, "*n z"]) -> Num[Array, "*n z"]:
        """Codes within the bounds, with those that are outside of them moved there; indices as they are."""
        return codes if self.bounds is None else jnp.clip(codes, *self.bounds)
