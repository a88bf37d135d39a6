"""Finite MDPs and the conventions that everything else follows.

    r(x, a)  is paid on leaving x with a; the return is Σ γᵗ Rₜ from t = 0
    P^π      = Σ_a π(a|x) P(·|x, a)                     [S, S]
    V^π      = (I − γP^π)⁻¹ r^π                         [S]
    Q^π      = r + γ P V^π                              [S, A]

A terminal state is absorbing: r is 0 there, and an arrival reward is paid once, on entering.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from jaxtyping import Bool
from numpy.typing import ArrayLike
from scipy.linalg.blas import dgemm  # pyright: ignore[reportAttributeAccessIssue]

from ggpi._jax.shapes import Lead
from ggpi.mdp.kernels import Kernel, KernelLike, check_distributions, checked_kernel
from ggpi.mdp.resolvent import Matrix, resolvent
from ggpi.mdp.rows import draw, running_sums, sparse_running_sums
from ggpi.rewards import Reward, as_reward, state_action
from ggpi.types import ActionValues, Scalar, StateValues, indices, real, reals

SMALLEST_STOPPING = 2.0**-40
"""The least 1 − γ."""
LARGEST_VALUE = 1e300


@dataclass(frozen=True, eq=False, init=False)
class TabularMDP:
    """Dynamics of a finite MDP: dense `P[S, A, S]`, or a sparse matrix of shape `[S·A, S]`.

    Rewards are separate.
    """

    P: Kernel
    terminal: Bool[np.ndarray, "S"]
    """Absorbing states that end an episode."""
    labels: range | tuple[Hashable, ...]
    """A name for each state, for example (row, col)."""

    def __init__(
        self,
        P: KernelLike,
        terminal: ArrayLike | None = None,
        labels: Sequence[Hashable] | None = None,
    ):
        """Checks P and makes its rows sum to 1.

        Args:
            P: P(x′|x, a) as an array [S, A, S], or as a sparse matrix [S·A, S] with row x·A + a.
            terminal: true or false for each state; terminal states must be absorbing. By default none is.
            labels: hashable names of the states; by default their numbers.
        """
        for name, given in (("P", P), ("terminal", terminal), ("labels", labels)):
            object.__setattr__(self, name, given)
        self.__post_init__()

    def __post_init__(self) -> None:
        P = checked_kernel(self.P)
        num_states = P.shape[-1]
        flags = reals(np.zeros(num_states) if self.terminal is None else self.terminal, "terminal")
        terminal = flags == 1
        if not (terminal | (flags == 0)).all():
            raise ValueError("terminal is true or false for each state, got other numbers")
        if terminal.shape != (num_states,):
            raise ValueError(f"terminal has one flag per state, shape ({num_states},), got {terminal.shape}")
        if self.labels is not None and len(self.labels) != num_states:
            raise ValueError(f"{num_states} states need {num_states} labels, got {len(self.labels)}")
        object.__setattr__(self, "P", P)
        object.__setattr__(self, "terminal", terminal)
        object.__setattr__(self, "labels", range(num_states) if self.labels is None else tuple(self.labels))
        self._check_terminal_states_absorb()

    def check_parts(self, lead: Lead) -> None:
        """States can be found by their labels."""
        for label in self.labels:
            hash(label)

    def _check_terminal_states_absorb(self) -> None:
        for x in np.flatnonzero(self.terminal):
            rows = self.kernel[x * self.num_actions : (x + 1) * self.num_actions]
            stay = np.asarray(rows @ (np.arange(self.num_states) == x))
            if not np.allclose(stay, 1.0):
                raise ValueError(
                    f"terminal state {x} is not absorbing: it must stay where it is for every action"
                )

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.P, np.ndarray)

    @property
    def num_states(self) -> int:
        return self.P.shape[-1]

    @property
    def num_actions(self) -> int:
        return self.P.shape[0] // self.num_states if self.is_sparse else self.P.shape[1]

    @property
    def kernel(self) -> Matrix:
        """P as a matrix [S·A, S], dense or sparse: `kernel @ f` is E[f(X₁)|x, a]."""
        return self.P if self.is_sparse else self.P.reshape(-1, self.num_states)

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def index(self, label: Hashable) -> int:
        """The number of the state that is called `label`."""
        if label not in self._index:
            raise KeyError(f"no state is called {label!r}; names look like {self.labels[0]!r}")
        return self._index[label]

    def indicator(self, *labels: Hashable) -> StateValues:
        """1 at the named states and 0 elsewhere."""
        values = np.zeros(self.num_states)
        values[[self.index(label) for label in labels]] = 1.0
        return values

    def ahead(self, f: ArrayLike) -> np.ndarray:
        """E[f(X₁) | x, a] for every pair: [S] → [S, A], [S, n] → [S, A, n]."""
        f = reals(f, "f")
        if f.ndim not in (1, 2) or len(f) != self.num_states:
            raise ValueError(f"f has shape [S] or [S, n] with S = {self.num_states}, got {f.shape}")
        # SciPy's BLAS, as in the solves: NumPy has its own, and idle threads of one hold up the other's.
        by_scipy = f.ndim == 2 and not self.is_sparse
        ahead = dgemm(1.0, f, self.kernel.T, trans_a=True).T if by_scipy else self.kernel @ f
        return ahead.reshape(self.num_states, self.num_actions, *f.shape[1:])

    def step(self, state: ArrayLike, action: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """One sample of X₁ for each pair of integer arrays."""
        state = indices(state, self.num_states, "states")
        rows = state * self.num_actions + indices(action, self.num_actions, "actions")
        u = rng.random(rows.shape)
        if isinstance(self.P, np.ndarray):
            first = rows * self.num_states
            return draw(self._sums, first, first + self.num_states - 1, u) - first
        return self.P.indices[draw(self._sums, self.P.indptr[rows], self.P.indptr[rows + 1] - 1, u)]

    @cached_property
    def _sums(self) -> np.ndarray:
        """The running sum of each row of P, flat."""
        P = self.P
        return running_sums(P).ravel() if isinstance(P, np.ndarray) else sparse_running_sums(P)

    def P_pi(self, policy: ArrayLike) -> Matrix:
        """P^π(x′|x) = Σ_a π(a|x) P(x′|x, a), dense or sparse as P is."""
        return self.mixture(self.checked_policy(policy))

    def mixture(self, pi: ActionValues) -> Matrix:
        """P^π of a π that is known to be valid, such as the result of `checked_policy`."""
        if isinstance(self.P, np.ndarray):
            return (pi[:, None, :] @ self.P)[:, 0]
        pairs = np.flatnonzero(pi)
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(pi, axis=1))])
        choose = scipy.sparse.csr_array((pi.ravel()[pairs], pairs, starts), shape=(pi.shape[0], pi.size))
        return scipy.sparse.csr_array(choose @ self.P)

    def r(self, reward: Reward | ArrayLike) -> ActionValues:
        """Any reward as the expected r(x, a) of leaving x with a; 0 at terminal states."""
        reward = self.checked_reward(reward)
        if reward.form == "arrival":
            r = self.ahead(reward.table)
        elif reward.form == "state":
            r = np.repeat(reward.table[:, None], self.num_actions, axis=1)
        else:
            r = np.array(reward.table, float)
        r[self.terminal] = 0.0
        return r

    def v(self, policy: ArrayLike, reward: Reward | ArrayLike, gamma: Scalar) -> StateValues:
        """V^π = (I − γP^π)⁻¹ r^π."""
        gamma = check_gamma(gamma)
        pi = self.checked_policy(policy)
        r_pi = (pi * check_range(self.r(reward), gamma)).sum(axis=1)
        return resolvent(self.mixture(pi), gamma).solve(r_pi)

    def q(self, policy: ArrayLike, reward: Reward | ArrayLike, gamma: Scalar) -> ActionValues:
        """Q^π = r + γ P V^π."""
        gamma = check_gamma(gamma)
        return self.r(reward) + gamma * self.ahead(self.v(policy, reward, gamma))

    def checked_policy(self, policy: ArrayLike) -> ActionValues:
        """π [S, A] of a policy or an array, or an error that says what is wrong with it."""
        pi = reals(policy, "policy")
        wanted = (self.num_states, self.num_actions)
        if pi.shape != wanted:
            raise ValueError(f"a policy of this MDP has shape [S, A] = {wanted}, got {pi.shape}")
        return check_distributions(pi, "policy", lambda x: f"state {x}")

    def checked_reward(self, reward: Reward | ArrayLike) -> Reward:
        """The reward, or an error when its shape is not this MDP's."""
        reward = as_reward(reward)
        if callable(reward.values):
            raise TypeError(
                f"rewards of a finite MDP are arrays [S] or [S, A], got the function {reward.values}"
            )
        states = (self.num_states,)
        wanted = (*states, self.num_actions) if reward.form == "state_action" else states
        if reward.table.shape != wanted:
            raise ValueError(
                f"a {reward.form} reward of this MDP has shape {wanted}, got {reward.table.shape}"
            )
        return reward if np.isfinite(reward.table).all() else self._without_unentered(reward)

    def _without_unentered(self, reward: Reward) -> Reward:
        """ρ with 0 where no state is ever entered, so that nothing there matters; elsewhere it has to be finite."""
        leaving = np.repeat(~self.terminal, self.num_actions).astype(float)
        entered = self.kernel.T @ leaving > 0
        bad = np.flatnonzero(entered & ~np.isfinite(reward.table))
        if len(bad):
            raise ValueError(
                f"{len(bad)} arrival rewards of states that can be entered are not finite, the first at index {bad[0]}"
            )
        return Reward("arrival", np.where(entered, reward.table, 0.0))

    @classmethod
    def from_gymnasium(cls, env: object) -> tuple[TabularMDP, Reward]:
        """(mdp, reward) of a toy-text environment, from its dictionary `P`.

        Transitions that terminate lead to one absorbing state, added last and labelled "terminal".
        The reward is the expected one of each (x, a).
        """
        table = getattr(getattr(env, "unwrapped", env), "P", None)
        if not isinstance(table, dict):
            raise TypeError(
                f"{env} has no transition dictionary `P`, as FrozenLake, Taxi and CliffWalking have"
            )
        num_states, num_actions = len(table), len(table[0])
        entries, r = [], np.zeros((num_states + 1, num_actions))
        for x, actions in table.items():
            for a, outcomes in actions.items():
                for probability, following, reward, terminated in outcomes:
                    entries.append(
                        (probability, x * num_actions + a, num_states if terminated else following)
                    )
                    r[x, a] += probability * reward
        entries += [(1.0, num_states * num_actions + a, num_states) for a in range(num_actions)]
        probabilities, rows, columns = (np.array(part) for part in zip(*entries, strict=True))
        shape = ((num_states + 1) * num_actions, num_states + 1)
        P = scipy.sparse.coo_array((probabilities, (rows, columns)), shape=shape).tocsr()
        terminal = np.arange(num_states + 1) == num_states
        return cls(P, terminal, (*range(num_states), "terminal")), state_action(r)


def check_gamma(gamma: object, what: str = "γ") -> float:
    """γ as a Python float, or an error when it is no number in [0, 1 − 2⁻⁴⁰].

    Rounding P alone changes values by about ε/(1−γ) of themselves, ε = 2⁻⁵²: a part in 4096 at 1 − γ = 2⁻⁴⁰ ≈ 1e-12,
    and all of them where γ is the float below 1.
    """
    number = real(gamma, what)
    if not 0 <= number < 1:
        raise ValueError(f"{what} lies in [0, 1), got {number}")
    if 1 - number < SMALLEST_STOPPING:
        raise ValueError(
            f"{what} is at most 1 − {SMALLEST_STOPPING:.1e}, closer to 1 rounding errors exceed the values; "
            f"got 1 − {1 - number:.1e}"
        )
    return number


def check_range(r: np.ndarray, gamma: float) -> np.ndarray:
    """The rewards r, or an error when values, which reach max|r| / (1−γ), would overflow."""
    largest = np.abs(r).max(initial=0.0)
    if largest > LARGEST_VALUE * (1 - gamma):
        raise ValueError(
            f"rewards up to {largest:.1e} give values beyond {LARGEST_VALUE:.0e} at 1 − γ = {1 - gamma:.1e}; "
            "multiply the rewards by a small number: policies do not change"
        )
    return r
