"""Finite MDPs and the conventions that everything else follows.

    r(x, a)  is earned on leaving x with a; the return is Σ γᵗ Rₜ from t = 0
    P^π      = Σ_a π(a|x) P(·|x, a)                     [S, S]
    V^π      = (I − γP^π)⁻¹ r^π                         [S]
    Q^π      = r + γ P V^π                              [S, A]
    β        = γ (1 − α), derived and never given beside α
    wₘ       = (1−γ)/(1−βₘ) · ∏_{i<m} (γ−βᵢ)/(1−βᵢ)      for m < n
    wₙ       = ∏_{i<n} (γ−βᵢ)/(1−βᵢ)

A terminal state is absorbing: r is 0 there, and an arrival reward is paid once, on entering.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.linalg.blas import dgemm  # pyright: ignore[reportAttributeAccessIssue]

from ggpi.resolvent import resolvent
from ggpi.rewards import Reward, as_reward, state_action
from ggpi.typing import ActionValues, StateValues
from ggpi.verifying import Lead

ROW_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class TabularMDP:
    """Dynamics of a finite MDP: dense `P[S, A, S]`, or a sparse matrix of shape `[S·A, S]`.

    Rewards are given apart. `terminal` marks absorbing states that end an episode; `labels` are
    what a person calls the states, for example (row, col).

    Paper: Prop 2.4
    """

    P: Any
    terminal: Any = None
    labels: Any = None

    def __post_init__(self):
        P = _checked_kernel(self.P)
        num_states = P.shape[-1]
        terminal = np.zeros(num_states, bool) if self.terminal is None else np.asarray(self.terminal, bool)
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

    def _check_terminal_states_absorb(self):
        for x in np.flatnonzero(self.terminal):
            rows = self.kernel[x * self.num_actions : (x + 1) * self.num_actions]
            stay = rows[:, [x]].toarray() if self.is_sparse else rows[:, [x]]
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
    def kernel(self) -> Any:
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
        f = np.asarray(f, float)
        if f.ndim not in (1, 2) or len(f) != self.num_states:
            raise ValueError(f"f has shape [S] or [S, n] with S = {self.num_states}, got {f.shape}")
        # SciPy's BLAS, as in the solves: NumPy has its own, and idle threads of one hold up the other's.
        by_scipy = f.ndim == 2 and not self.is_sparse
        ahead = dgemm(1.0, f, self.kernel.T, trans_a=True).T if by_scipy else self.kernel @ f
        return ahead.reshape(self.num_states, self.num_actions, *f.shape[1:])

    def step(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One sample of X₁ for each pair of integer arrays."""
        rows = np.asarray(state) * self.num_actions + action
        places = np.searchsorted(self._cumulative, rows + rng.random(rows.shape), side="right")
        if self.is_sparse:
            return self.P.indices[np.minimum(places, self.P.indptr[rows + 1] - 1)]
        return np.minimum(places, (rows + 1) * self.num_states - 1) % self.num_states

    @cached_property
    def _cumulative(self) -> np.ndarray:
        """Running sum over all entries of P: row i of the kernel covers [i, i + 1)."""
        return np.cumsum(self.P.data if self.is_sparse else self.P)

    def P_pi(self, policy: ArrayLike) -> Any:
        """P^π(x′|x) = Σ_a π(a|x) P(x′|x, a), dense or sparse as P is."""
        pi = self.checked_policy(policy)
        if not self.is_sparse:
            return (pi[:, None, :] @ self.P)[:, 0]
        pairs = np.flatnonzero(pi)
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(pi, axis=1))])
        choose = scipy.sparse.csr_array((pi.ravel()[pairs], pairs, starts), shape=(pi.shape[0], pi.size))
        return (choose @ self.P).tocsr()

    def r(self, reward: Reward | ArrayLike) -> ActionValues:
        """Any reward as the expected r(x, a) earned on leaving x with a; 0 at terminal states."""
        reward = self.checked_reward(reward)
        if reward.form == "arrival":
            r = self.ahead(reward.values)
        elif reward.form == "state":
            r = np.repeat(reward.values[:, None], self.num_actions, axis=1)
        else:
            r = np.array(reward.values, float)
        r[self.terminal] = 0.0
        return r

    def v(self, policy: ArrayLike, reward: Reward | ArrayLike, gamma: float) -> StateValues:
        """V^π = (I − γP^π)⁻¹ r^π."""
        check_gamma(gamma)
        r_pi = (self.checked_policy(policy) * self.r(reward)).sum(axis=1)
        return resolvent(self.P_pi(policy), gamma).solve(r_pi)

    def q(self, policy: ArrayLike, reward: Reward | ArrayLike, gamma: float) -> ActionValues:
        """Q^π = r + γ P V^π."""
        return self.r(reward) + gamma * self.ahead(self.v(policy, reward, gamma))

    def checked_policy(self, policy: ArrayLike) -> ActionValues:
        """π [S, A] of a policy or an array, or an error that says what is wrong with it."""
        pi = np.asarray(policy, float)
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
        if reward.values.shape != wanted:
            raise ValueError(
                f"a {reward.form} reward of this MDP has shape {wanted}, got {reward.values.shape}"
            )
        return reward

    @classmethod
    def from_gymnasium(cls, env: Any) -> tuple[TabularMDP, Reward]:
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


def beta_of(gamma: float, alpha: float) -> float:
    """β = γ (1 − α): the horizon of a segment that ends with probability α.

    Paper: Thm 3.2
    """
    check_gamma(gamma)
    check_alpha(alpha)
    return gamma * (1 - alpha)


def composition_weights(gamma: float, alphas: Sequence[float]) -> np.ndarray:
    """w₁ … wₙ for n − 1 switches with the given α's; they sum to 1.

    wₘ = (1−γ)/(1−βₘ) · ∏_{i<m} (γ−βᵢ)/(1−βᵢ) for m < n, and wₙ = ∏_{i<n} (γ−βᵢ)/(1−βᵢ).

    Paper: Lem B.2, Prop 2.5, Thm 3.2, Eq 5
    """
    betas = np.array([beta_of(gamma, alpha) for alpha in alphas])
    going_on = np.cumprod(np.concatenate([[1.0], (gamma - betas) / (1 - betas)]))
    stopping = np.append((1 - gamma) / (1 - betas), 1.0)
    return going_on * stopping


def check_gamma(gamma: float) -> None:
    """Refuses γ ∉ [0, 1).

    Beyond the paper: clear errors
    """
    if not 0 <= gamma < 1:
        raise ValueError(f"γ lies in [0, 1), got {gamma}")


def check_alpha(alpha: float) -> None:
    """Refuses α ∉ (0, 1].

    Paper: Def 3.1
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"α, the probability of a switch, lies in (0, 1], got {alpha}")


def check_distributions(rows: np.ndarray, what: str, name: Callable[[int], str]) -> np.ndarray:
    """Rows [n, m] that are distributions within 1e-6, renormalised; else an error naming the first bad row.

    Beyond the paper: the paper's own 3-state matrix is off by 1e-9
    """
    sums = rows.sum(axis=1)
    bad = ~((np.abs(sums - 1) <= ROW_SUM_TOLERANCE) & (rows >= 0).all(axis=1))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{what}: {bad.sum()} of {len(rows)} rows are no probability distributions; the first is "
            f"{name(first)}, with sum {sums[first]:.9g} and smallest entry {rows[first].min():.3g}"
        )
    return rows / sums[:, None]


def _checked_kernel(P: Any) -> Any:
    """P with rows that sum to exactly 1, as float64 [S, A, S] or CSR [S·A, S]."""
    if scipy.sparse.issparse(P):
        return _checked_sparse(scipy.sparse.csr_array(P, dtype=float))
    P = np.asarray(P, float)
    if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
        raise ValueError(f"P has shape [S, A, S], or is sparse with shape [S·A, S]; got {P.shape}")
    rows = check_distributions(P.reshape(-1, P.shape[2]), "P", lambda row: _pair(row, P.shape[1]))
    return rows.reshape(P.shape)


def _checked_sparse(P: Any) -> scipy.sparse.csr_array:
    num_rows, num_states = P.shape
    if num_states == 0 or num_rows == 0 or num_rows % num_states:
        raise ValueError(
            f"a sparse P has shape [S·A, S], so its rows are a multiple of its columns; got {P.shape}"
        )
    sums = P.sum(axis=1)
    bad = ~(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)
    if bad.any() or not (P.data >= 0).all():
        first = int(np.flatnonzero(bad)[0]) if bad.any() else int(P.tocoo().row[np.argmin(P.data)])
        raise ValueError(
            f"P: {max(int(bad.sum()), 1)} rows are no probability distributions; the first is "
            f"{_pair(first, num_rows // num_states)}, with sum {sums[first]:.9g}"
        )
    data = P.data / np.repeat(sums, np.diff(P.indptr))
    narrow = np.int32 if P.nnz < 2**31 else np.int64
    return scipy.sparse.csr_array((data, P.indices.astype(narrow), P.indptr.astype(narrow)), shape=P.shape)


def _pair(row: int, num_actions: int) -> str:
    return f"state {row // num_actions}, action {row % num_actions}"
