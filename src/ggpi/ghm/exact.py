"""Exact GHMs of finite MDPs, as expectation operators.

    μ^π_β(·|x, a)       = (1−β) Σ_{k≥0} βᵏ P(X_{k+1} = · | x, a, then π)
    E_{X∼μ}[f(X)]       = (1−β) P (I − βP^π)⁻¹ f
    (μ₂ ⊗_π μ₁)(y|x, a) = Σ_{x′,a′} μ₁(x′|x, a) π(a′|x′) μ₂(y|x′, a′)
    T^π_β μ             = (1−β) P + β μ ⊗_π P,   with μ^π_β its only fixed point

One factorisation of I − βP^π serves every f, and μ itself [S, A, S] is formed only on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import ArrayLike

from ggpi._jax.alias import AliasTable, alias_table
from ggpi._jax.shapes import Lead, check_shape
from ggpi.mdp.resolvent import Resolvent, resolvent
from ggpi.mdp.rows import sparse_running_sums
from ggpi.mdp.tabular import TabularMDP, check_gamma
from ggpi.rewards import Reward
from ggpi.types import Key, Scalar, reals

TABLE_LIMIT = 2**27
"""A sampler keeps a table of μ while it has at most this many entries (1 GB); beyond, it simulates."""


@dataclass(frozen=True, eq=False)
class ExactGHM:
    """μ^π_β of a finite MDP.

    Paper: Def 2.2, Prop 2.3
    """

    mdp: TabularMDP
    policy: Any
    horizon: float

    def __post_init__(self):
        object.__setattr__(self, "horizon", check_gamma(self.horizon))
        self.mdp.checked_policy(self.policy)

    @cached_property
    def resolvent(self) -> Resolvent:
        return resolvent(self.mdp.P_pi(self.policy), self.horizon)

    def expect(self, f: ArrayLike) -> np.ndarray:
        """E_{X∼μ(·|x,a)}[f(X)] for every pair: [S] → [S, A], [S, n] → [S, A, n].

        Paper: Prop 2.4
        """
        return self.mdp.ahead(self.visits(f))

    def visits(self, f: ArrayLike) -> np.ndarray:
        """(1−β) (I − βP^π)⁻¹ f: the mean of f at a geometric time that may be 0, from the state X₁ that it starts in.

        Paper: Prop 2.4
        """
        return (1 - self.horizon) * self.resolvent.solve(reals(f, "f"))

    def error(self, largest: float) -> float:
        """A bound on the errors of `expect` and `visits` that are not relative to their values, for |f| ≤ largest."""
        return (1 - self.horizon) * self.resolvent.error(largest)

    def dense(self) -> np.ndarray:
        """μ [S, A, S]."""
        return self.expect(np.eye(self.mdp.num_states))

    @cached_property
    def sampler(self) -> TabularSampler | Simulator:
        """The same model for JAX: a table of μ when it fits, else simulation for a geometric time."""
        if self.mdp.kernel.shape[0] * self.mdp.num_states <= TABLE_LIMIT:
            return tabular_sampler(self.dense(), self.policy)
        return Simulator.of(self)


class TabularSampler(eqx.Module):
    """Draws X′ ∼ μ(·|x, a) from a table of μ; states and actions are integers of any shape."""

    rows: AliasTable
    """μ(·|x, a) for all pairs, and below them Σ_a π(a|x) μ(·|x, a) for all states."""
    num_states: int = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """A row for each pair, and for each state."""
        count = self.num_states * (self.num_actions + 1)
        check_shape("rows.keep", self.rows.keep, (*lead, count, self.num_states))

    def sample(
        self, state: Any, action: Any, *, among: Sequence[int] | Int[Array, "K"] | None = None, key: Key
    ) -> Any:
        """X′ for each pair; of stacked tables, those of the policies `among`, for states [K, rows]."""
        return self._draw(jnp.asarray(state) * self.num_actions + action, among, key)

    def sample_onward(
        self, state: Any, *, among: Sequence[int] | Int[Array, "K"] | None = None, key: Key
    ) -> Any:
        """X′ when the first action is π's own, in a single draw."""
        return self._draw(jnp.asarray(state) + self.num_states * self.num_actions, among, key)

    def _draw(self, row: jax.Array, among: Sequence[int] | Int[Array, "K"] | None, key: Key) -> jax.Array:
        if among is None:
            return self.rows.sample(row, key=key)
        first = jnp.asarray(among, jnp.int32) * self.rows.keep.shape[-2]
        return self.rows.sample(row + first[:, None], key=key)


def tabular_sampler(mu: np.ndarray, policy: ArrayLike) -> TabularSampler:
    """The sampler of an array μ [S, A, S] of a policy [S, A]."""
    num_states, num_actions, _ = mu.shape
    onward = np.einsum("xa,xay->xy", np.asarray(policy, float), mu)
    rows = np.maximum(np.concatenate([mu.reshape(-1, num_states), onward]), 0.0)
    return TabularSampler(alias_table(rows / rows.sum(axis=1, keepdims=True)), num_states, num_actions)


class Simulator(eqx.Module):
    """Draws X_T by stepping a sparse MDP under π for T ∼ Geometric(1−β) steps."""

    cumulative: jax.Array
    successors: jax.Array
    starts: jax.Array
    policy: AliasTable
    horizon: float
    num_actions: int = eqx.field(static=True)
    longest: int = eqx.field(static=True)

    @classmethod
    def of(cls, ghm: ExactGHM) -> Simulator:
        import scipy.sparse

        P = scipy.sparse.csr_array(ghm.mdp.kernel)
        counts = np.diff(P.indptr)
        return cls(
            jnp.asarray(sparse_running_sums(P), jnp.float32),
            jnp.asarray(P.indices, jnp.int32),
            jnp.asarray(P.indptr, jnp.int32),
            alias_table(ghm.mdp.checked_policy(ghm.policy)),
            ghm.horizon,
            ghm.mdp.num_actions,
            int(counts.max()),
        )

    def check_parts(self, lead: Lead) -> None:
        """A row of successors for each pair; a time to walk that ends."""
        check_gamma(float(self.horizon))
        rows, num_actions = self.policy.keep.shape
        starts, successors = np.asarray(self.starts), np.asarray(self.successors)
        check_shape("starts", starts, (rows * num_actions + 1,))
        check_shape("successors", successors, self.cumulative.shape)
        counts = np.diff(starts)
        ends = (int(starts[0]), int(starts[-1]), int(counts.min()), self.num_actions)
        if ends != (0, len(successors), max(1, ends[2]), num_actions) or self.longest != counts.max():
            raise ValueError("starts are not those of a row for each pair")
        if not ((successors >= 0) & (successors < rows)).all():
            raise ValueError(f"successors are not among {rows} states")

    def sample(self, state: Any, action: Any, *, key: Key) -> Any:
        state, action = jnp.broadcast_arrays(jnp.asarray(state, jnp.int32), jnp.asarray(action, jnp.int32))
        length_key, walk_key = jax.random.split(key)
        steps = jax.random.geometric(length_key, 1 - self.horizon, state.shape)

        def step(carry):
            t, x, a = carry
            step_key, action_key = jax.random.split(jax.random.fold_in(walk_key, t))
            arrived = self._step(x, a, step_key)
            x = jnp.where(t < steps, arrived, x)
            return t + 1, x, self.policy.sample(x, key=action_key)

        return jax.lax.while_loop(lambda carry: carry[0] < steps.max(), step, (0, state, action))[1]

    def sample_onward(self, state: Any, *, key: Key) -> Any:
        """X_T when the first action is π's own."""
        action_key, walk_key = jax.random.split(key)
        state = jnp.asarray(state, jnp.int32)
        return self.sample(state, self.policy.sample(state, key=action_key), key=walk_key)

    def _step(self, x, a, key):
        """The first successor whose cumulative probability exceeds a uniform number."""
        row = x * self.num_actions + a
        last = self.starts[row + 1] - 1
        u = jax.random.uniform(key, x.shape)
        places = jnp.minimum(self.starts[row][..., None] + jnp.arange(self.longest), last[..., None])
        passed = (self.cumulative[places] <= u[..., None]).sum(axis=-1)
        return self.successors[jnp.minimum(self.starts[row] + passed, last)]


def compose(mu_2: np.ndarray, mu_1: np.ndarray, policy: ArrayLike) -> np.ndarray:
    """(μ₂ ⊗_π μ₁)(y|x, a) = Σ_{x′,a′} μ₁(x′|x, a) π(a′|x′) μ₂(y|x′, a′).

    Paper: Def 6.1
    """
    return mu_1 @ np.einsum("xa,xay->xy", np.asarray(policy, float), mu_2)


def bellman(mu: np.ndarray, mdp: TabularMDP, policy: ArrayLike, beta: Scalar) -> np.ndarray:
    """T^π_β μ = (1−β) P + β μ ⊗_π P.

    Paper: Prop 6.2
    """
    beta = check_gamma(beta, "β")
    mu_pi = np.einsum("xa,xay->xy", mdp.checked_policy(policy), mu)
    return mdp.ahead((1 - beta) * np.eye(mdp.num_states) + beta * mu_pi)


def successor_representation(mdp: TabularMDP, policy: ArrayLike, gamma: Scalar) -> np.ndarray:
    """λ^π(x, a) = E[Σ_{k≥0} γᵏ e_{X_k}] = e_x + γ/(1−γ) μ^π_γ(·|x, a), shape [S, A, S].

    Paper: Def A.1
    """
    gamma = check_gamma(gamma)
    mu = ExactGHM(mdp, policy, gamma).dense()
    return np.eye(mdp.num_states)[:, None, :] + gamma / (1 - gamma) * mu


def successor_features(
    mdp: TabularMDP, policy: ArrayLike, features: Sequence[Reward], gamma: Scalar
) -> np.ndarray:
    """ψ^π(x, a) = E[Σ_t γᵗ φ(X_t, A_t, X_{t+1})], shape [S, A, n], each feature given as a reward.

    With the arrival features (1−γ) e_{x′} this is μ^π_γ, when no state is terminal.

    Paper: Def A.2, Prop A.3
    """
    gamma, pi = check_gamma(gamma), mdp.checked_policy(policy)
    phi = np.stack([mdp.r(feature) for feature in features], axis=-1)
    phi_pi = np.einsum("xa,xan->xn", pi, phi)
    return phi + gamma / (1 - gamma) * ExactGHM(mdp, policy, gamma).expect(phi_pi)
