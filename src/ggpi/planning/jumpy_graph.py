"""The jumpy graph: closed-loop switching with learned models, for every reward.

Landmarks x_i cover the data; from each, every policy k makes n jumps X ∼ μ_β^k to (a′, X). V between landmarks is that
of the nearest ones, so that the closed loop of `ggpi.planning.closed_loop` becomes a sparse MDP over landmarks:

    leaving rewards   U_k(x_i) = mean_j [ r(x_i, a_j) + γ(1−α)/(1−β) r(X_j, a′_j) + c V(X_j) ]
    arrival rewards   U_k(x_i) = mean_j [ ρ(X_j)/(1−β) + c V(X_j) ],     c = γα/(1−β),   V = max_k U_k

Rewards are evaluated where jumps end; only V is interpolated. At a terminal X the arrival term is ρ(X), leaving
rewards and V are 0. Jumps are drawn once, without rewards; `solve` takes a fraction of a second for each. Its values
are biased upwards, because the maximum prefers policies whose jumps were lucky: with n jumps of standard deviation σ by
about σ√(2 ln K/n) per jump. An agent therefore acts, and reports values, by fresh jumps from the true state.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int, Real
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from ggpi._jax.batching import Function
from ggpi._jax.jit import fast_jit
from ggpi._jax.shapes import Lead
from ggpi.data.transitions import Transitions
from ggpi.evaluation.rewards import OnHost, checked_reward, first_bad_sample, rewards_at
from ggpi.ghm.base import GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.ghm.samplers import Table
from ggpi.mdp.tabular import check_gamma
from ggpi.planning.coverage import Coverage, coverage_of
from ggpi.planning.graph_values import jump_matrix, solve_graph
from ggpi.planning.landmarks import Atlas, atlas_of, points_of
from ggpi.planning.snapping import snapped
from ggpi.planning.ways import Ways, led, longest_jump, recorded_edges, ways_of
from ggpi.rewards import Each, Reward, as_reward
from ggpi.switching import beta_of, check_alpha
from ggpi.types import Numbers


@dataclass(frozen=True, eq=False)
class Jumps:
    """n jumps of each of K policies from each of M landmarks, and the m landmarks nearest to their ends."""

    action: Real[np.ndarray, "K M n *a"]
    """What the policy did at the landmark."""
    end: Real[np.ndarray, "K M n *x"]
    end_action: Real[np.ndarray, "K M n *a"]
    """What it would do there."""
    ended: Bool[np.ndarray, "K M n"]
    """Whether the end is a terminal state."""
    share: Float[np.ndarray, "K M n"]
    """What each jump counts: 1/n, or 0 where it ends out of reach and the others count more."""
    distance: Float[np.ndarray, "K M n"]
    """Of the end to the nearest landmark."""
    neighbour: Int[np.ndarray, "K M n m"]
    weight: Float[np.ndarray, "K M n m"]
    """Of V at the neighbours: they sum to the share, or to 0 in terminal states."""


@dataclass(frozen=True, eq=False)
class JumpyGraph:
    """Jumps between landmarks; `ggpi.jumpy_graph` makes it, `ggpi.save` and `ggpi.load` keep it."""

    gamma: float
    alpha: float
    models: str
    """A digest of the models that jumped."""
    sizes: tuple[int, ...]
    """Numbers of states and actions of a finite MDP; () where states are vectors."""
    has_terminals: bool
    """Whether it was known which states are terminal."""
    units: Float[np.ndarray, "d"]
    """What counts as a difference of 1, in each coordinate."""
    reach: float
    """The distance within which 99.9% of the data have a landmark."""
    landmarks: Real[np.ndarray, "M *x"]
    jumps: Jumps
    ways: Ways | None = None
    """What recorded transitions connect, if that is to count: see `along`."""

    @property
    def beta(self) -> float:
        return beta_of(self.gamma, self.alpha)

    @property
    def discount(self) -> float:
        """c = γα/(1−β) = (γ−β)/(1−β), the discount of a jump."""
        return self.gamma * self.alpha / (1 - self.beta)

    @property
    def num_policies(self) -> int:
        return len(self.jumps.end)

    @property
    def num_neighbours(self) -> int:
        return self.jumps.neighbour.shape[-1]

    @cached_property
    def atlas(self) -> Atlas:
        """The landmarks for compiled programs."""
        found = atlas_of(self.landmarks, self.units, self.reach, self.num_neighbours)
        if self.ways is None:
            return found
        return replace(
            found, anchor=jnp.asarray(self.ways.anchor), connected=jnp.asarray(self.ways.connected)
        )

    def distance(self, states: Numbers) -> Float[np.ndarray, "B"]:
        """How far states [B, …] are from the nearest landmark, in units of the data."""
        if np.shape(states)[1:] != self.landmarks.shape[1:]:
            raise ValueError(f"states are {['B', *self.landmarks.shape[1:]]}, got {list(np.shape(states))}")
        return self._tree.query(points_of(states, self.units))[0]

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(points_of(self.landmarks, self.units))

    def along(self, data: Transitions) -> JumpyGraph:
        """The same graph with jumps that end where recorded transitions could have led; agents see to it, too.

        A jump that no record could have made ends at the nearest landmark that one could have reached. It helps where
        models leak through walls, and needs transitions in most places, in most directions.

        Args:
            data: transitions of the same world, such as those that the models learned from.
        """
        if not isinstance(data, Transitions):
            raise TypeError(f"data are the recorded Transitions, got {type(data).__name__}")
        data.check()
        if data.state.shape[1:] != self.landmarks.shape[1:]:
            raise ValueError(
                f"data are of another world: its states have the shape {data.state.shape[1:]}, landmarks "
                f"{self.landmarks.shape[1:]}"
            )
        longest = longest_jump(self.beta)
        first, last, steps = recorded_edges(data, longest)
        begin, end = (
            np.asarray(self._tree.query(points_of(x, self.units), workers=-1)[1])
            for x in (data.state[first], data.next_state[last])
        )
        found = replace(self, ways=ways_of(self._tree.data, begin, end, steps, longest))
        end = led(found.atlas, self._tree, self.jumps.end, self.jumps.ended)
        parts = snapped(
            points_of(end, self.units), self.jumps.ended, self._tree, self.reach, self.num_neighbours
        )
        names = "share", "distance", "neighbour", "weight"
        return replace(found, jumps=replace(self.jumps, end=end, **dict(zip(names, parts, strict=True))))

    def solve(
        self, reward: Reward | ArrayLike | Function
    ) -> Float[np.ndarray, "M"] | Float[np.ndarray, "B M"]:
        """V = max_k U_k at every landmark; of a batch of rewards (`ggpi.rewards.each`), V of each.

        Args:
            reward: any reward of the world of the models.
        """
        checked = checked_reward(as_reward(reward), self._state, self._action, self.sizes or None)
        values = (
            checked.values if callable(checked.values) else Table(jnp.asarray(checked.values, jnp.float32))
        )
        if not isinstance(values, Each):
            return self._solved(checked.form, values)
        count = len(jax.tree.leaves(values.values)[0])
        rows = [jax.tree.map(lambda leaf, b=b: leaf[b], values.values) for b in range(count)]
        return np.stack([self._solved(checked.form, row) for row in rows])

    def diagnose(self) -> Coverage:
        """How well landmarks cover where jumps end; print it before the first episode."""
        return coverage_of(points_of(self.landmarks, self.units), self.jumps, self.units, self.reach)

    def check_models(self, ghms: GHMs) -> None:
        """Raises unless these models made the jumps."""
        if self.gamma != ghms.gamma or self.alpha not in ghms.alphas:
            raise ValueError(
                f"the graph is of γ = {self.gamma:g} and α = {self.alpha:g}, the models are of γ = {ghms.gamma:g} and "
                f"α in {list(ghms.alphas)}; make the graph of these models: ggpi.jumpy_graph(ghms, data, key=…)"
            )
        if self.num_policies != len(ghms.policies):
            raise ValueError(
                f"the graph has jumps of {self.num_policies} policies, there are models of {len(ghms.policies)}; "
                "make the graph of these models: ggpi.jumpy_graph(ghms, data, key=…)"
            )
        if self.models != models_digest(ghms, self.alpha):
            raise ValueError(
                "the graph was made of other models, or of other policies: its jumps are not theirs. Make the graph "
                "of these models: ggpi.jumpy_graph(ghms, data, key=…)"
            )

    def check_parts(self, lead: Lead) -> None:
        """Shapes fit, numbers are finite, neighbours exist."""
        check_gamma(self.gamma)
        check_alpha(self.alpha)
        jumps, shape = self.jumps, (self.num_policies, len(self.landmarks), self.jumps.end.shape[2])
        if not all(part.shape[:3] == shape for part in vars(jumps).values()) or 0 in shape:
            raise ValueError(
                f"jumps are not all of {shape[0]} policies, {shape[1]} landmarks and {shape[2]} jumps"
            )
        if jumps.end.shape[3:] != self.landmarks.shape[1:] or jumps.weight.shape != jumps.neighbour.shape:
            raise ValueError("ends and landmarks, or neighbours and their weights, differ in shape")
        if jumps.action.shape != jumps.end_action.shape or self.units.size != self.landmarks[0].size:
            raise ValueError("actions, or units and coordinates, differ in shape")
        if not (jumps.neighbour.min() >= 0 and jumps.neighbour.max() < len(self.landmarks)):
            raise ValueError(f"neighbours are not landmarks 0 to {len(self.landmarks) - 1}")
        if len(self.sizes) != (2 if self.landmarks.ndim == 1 else 0):
            raise ValueError(f"sizes of a finite MDP are two numbers, of vectors none, got {self.sizes}")
        parts = self.landmarks, self.units, self.reach, jumps.end, jumps.share, jumps.weight, jumps.distance
        if not all(np.isfinite(part).all() for part in parts) or not (self.units > 0).all():
            raise ValueError("landmarks, units or jumps are not finite")
        if (jumps.weight < 0).any() or not np.allclose(jumps.share.sum(axis=2), 1, atol=1e-4):
            raise ValueError("the jumps from a landmark do not count 1 together")
        if self.ways is not None:
            self.ways.check(len(self.landmarks))
        if (jumps.weight.sum(axis=(2, 3)) > 1 + 1e-4).any():
            raise ValueError("the neighbours of the jumps from a landmark weigh more than 1")

    @property
    def _state(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.landmarks.shape[1:], self.landmarks.dtype)

    @property
    def _action(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.jumps.action.shape[3:], self.jumps.action.dtype)

    def _solved(self, form: str, values: Any) -> Float[np.ndarray, "M"]:
        f = self._rewards(form, values)
        return solve_graph(f, self._matrix, self.discount)

    @cached_property
    def _matrix(self) -> scipy.sparse.csr_array:
        return jump_matrix(self.jumps.weight, self.jumps.neighbour)

    def _rewards(self, form: str, values: Any) -> Float[np.ndarray, "K M"]:
        """The reward of a jump of each policy from each landmark, in units of Q."""
        jumps = self.jumps
        actions = (jumps.end_action,) if form == "state_action" else ()
        end = _rewards_at(values, jumps.end, *actions)
        if form == "arrival":
            return (jumps.share * np.where(jumps.ended, end, end / (1 - self.beta))).sum(axis=2)
        if form == "state":
            now = _rewards_at(values, self.landmarks[None, :, None])
        else:
            start = np.broadcast_to(self.landmarks[None, :, None], jumps.end.shape)
            now = _rewards_at(values, start, jumps.action)
        scale = self.gamma * (1 - self.alpha) / (1 - self.beta)
        return (jumps.share * (now + scale * np.where(jumps.ended, 0.0, end))).sum(axis=2)


def models_digest(ghms: GHMs, alpha: float) -> str:
    """A digest of the arrays of the policies, and of their models at β = γ(1−α)."""
    parts: Any = ghms.models[1 + ghms.alphas.index(alpha)]
    if isinstance(ghms.segment(0, None), ExactGHM):
        kernel = scipy.sparse.csr_array(ghms.mdp.kernel)
        parts = kernel.data, kernel.indices, kernel.indptr, ghms.mdp.terminal
    elif ghms.network is not None:  # conditions are computed from β, and so rounded as the machine rounds
        parts = eqx.tree_at(lambda network: network.condition, ghms.network, jnp.zeros(0))
    digest = hashlib.sha256(" ".join(ghms.names).encode())
    for leaf in jax.tree.leaves(eqx.filter((parts, ghms.sampler().bank.arrays), eqx.is_array)):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _rewards_at(values: Any, x: Numbers, *action: Numbers) -> np.ndarray:
    """The reward of every x [K, M, n, …]; raises where it is not finite."""
    at = rewards_at if isinstance(values, OnHost) else _compiled_rewards
    found = np.asarray(at(values, x, *action))
    if not np.isfinite(found).all():
        raise ValueError(f"{first_bad_sample(values, x, *action)}; rewards are finite numbers")
    return found


_compiled_rewards = fast_jit(rewards_at)
