"""Switching that looks where it is: closed-loop values of a set of policies, exactly.

A switching policy changes its policy blindly. Here every switch chooses: after each step, with probability α, the
policy that is best in the state just reached takes over, else the current one continues:

    Q_k(x, a) = r(x, a) + γ E[(1−α) U_k(X₁) + α V(X₁)],   U_k = Σ_a π_k Q_k,   V = max_k U_k

Any switching policy with head k and the same α is one way to choose, so U_k ≥ V^ν whatever its depth, and the policy
π′ that is greedy in Q̄ = max_k Q_k has Q^{π′} ≥ Q̄ ≥ max_ν Q^ν: GGPI at infinite depth, from k models at β = γ(1−α).

    V ← T V = max_k U_k,   U_k = (I − βP_k)⁻¹ (r_k + γα P_k V)

contracts by c = (γ−β)/(1−β). For a single policy T's matrix γα(I − βP)⁻¹P has its eigenvalues in a disc that just
covers [0, c], so that steps beyond T V contract by c/(2−c) (`momentum`). Plain sweeps follow, which always converge:
with rewards of one sign every value, however small, relative to itself. Where c is close to 1, steps of policy
iteration come in between instead: V of the current choice κ solves V = U_κ, by BiCGSTAB with the same k solvers; a
step that does not help is followed by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from ggpi.evaluation.values import QValues
from ggpi.ghm.base import GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.mdp.resolvent import bicgstab
from ggpi.mdp.tabular import TabularMDP, check_range
from ggpi.mdp.ties import RESOLUTION, Accuracy
from ggpi.rewards import Reward
from ggpi.switching import GSP, GSPs, check_alpha
from ggpi.types import ActionValues, Scalar, StateValues

PolicyValues = Float[np.ndarray, "K S"]

ROUNDING = 4 * float(np.finfo(float).eps)
SLOW = 0.6
"""Above this contraction, steps of policy iteration come in between; below it, momentum helps."""
MOST_SWEEPS = 1_000
"""Beyond those that c says are enough for the largest values: small values of distant states take longer."""
SMALLEST = 1e-30
"""Of the largest value: down to here small values are exact relative to themselves, if rewards are of one sign."""
MOST_PRODUCTS = 40
"""Iterations of one policy evaluation."""


def evaluate_closed_loop(ghms: GHMs, reward: Reward | ArrayLike, *, alpha: Scalar | None = None) -> QValues:
    """Q_k(x, a) of every policy: start with it, and switch with probability α to the best policy of the state.

    Args:
        ghms: the models of `ggpi.exact_ghms`.
        reward: a reward of their MDP.
        alpha: one of the models' α's; not needed if they have only one.

    Returns:
        Values [K, S, A] for `improve` and `improve_head`, with `.v` [K, S]. Each is labelled by its first policy.
    """
    loop, checked = _closed_loop(ghms, reward, closed_loop_alpha(ghms, alpha))
    solved = loop.solve()
    q = np.stack([loop.q(u, solved.v) for u in solved.u])
    one_sign = (checked.table >= 0).all() or (checked.table <= 0).all()
    absolute = Reward(checked.form, np.abs(checked.table))
    sizes = None if one_sign else lambda: evaluate_closed_loop(ghms, absolute, alpha=alpha).array
    return labelled(q, ghms).with_accuracy(Accuracy(RESOLUTION, loop.gamma * solved.error, sizes))


def labelled(q: Float[np.ndarray, "K S A"], ghms: GHMs) -> QValues:
    """Closed-loop values, each with the policy that it starts with: a suffix-closed set."""
    return QValues(q, GSPs(tuple(GSP((k,)) for k in range(len(ghms.policies)))), ghms.policies)


def closed_loop_alpha(ghms: GHMs, alpha: Scalar | None) -> float:
    """The α that was asked for, or the only one that there are models for."""
    if alpha is not None:
        chosen = check_alpha(alpha)
        ghms.horizon(chosen)
        return chosen
    if len(ghms.alphas) != 1:
        raise ValueError(
            f"these models are of {len(ghms.alphas)} α's, {list(ghms.alphas)}: say which with alpha="
        )
    return check_alpha(ghms.alphas[0])


class _Solved(NamedTuple):
    """U [K, S], its maximum V [S], and a bound on their errors beyond rounding relative to each value."""

    u: PolicyValues
    v: StateValues
    error: float


@dataclass(frozen=True, eq=False)
class _Loop:
    """T and its parts."""

    mdp: TabularMDP
    models: tuple[ExactGHM, ...]
    """At horizon β."""
    pis: Float[np.ndarray, "K S A"]
    r: ActionValues
    gamma: float
    alpha: float

    @property
    def contraction(self) -> float:
        beta = self.models[0].horizon
        return (self.gamma - beta) / (1 - beta)

    def q(self, u: StateValues, v: StateValues) -> ActionValues:
        """r + γP((1−α)u + αv)."""
        return self.r + self.gamma * self.mdp.ahead((1 - self.alpha) * u + self.alpha * v)

    def momentum(self) -> tuple[float, float, int]:
        """τ, μ of v ← v + τ(Tv − v) + μ(v − last v), and for how many sweeps; plain ones if c is close to 1.

        Chebyshev's two-step iteration for eigenvalues in [0, c].
        """
        c = self.contraction
        if c > SLOW or c <= 0:
            return 1.0, 0.0, 0
        rate = c / (2 - c)
        omega = 2 / (1 + np.sqrt(1 - rate**2))
        return omega * 2 / (2 - c), omega - 1, int(np.log(SMALLEST) / np.log(rate))

    def continued(
        self, v: StateValues, r: ActionValues, guess: Sequence[StateValues | None] | None = None
    ) -> list[StateValues]:
        """U_k = (I − βP_k)⁻¹ (r_k + γα P_k v) of every policy."""
        after = r + self.gamma * self.alpha * self.mdp.ahead(v)
        guesses = guess or [None] * len(self.pis)
        return [
            model.resolvent.solve(np.einsum("xa,xa->x", pi, after), guess=near)
            for model, pi, near in zip(self.models, self.pis, guesses, strict=True)
        ]

    def solve(self) -> _Solved:
        """V = T V, from below; stops when no value changes by more than rounding, relative to itself."""
        v = last = np.where(self.mdp.terminal, 0.0, self.r.min() / (1 - self.gamma))
        c, u, best, change = self.contraction, None, np.inf, v
        tau, mu, num_faster = self.momentum()
        noise = 2 * max(model.resolvent.error(np.abs(self.r).max()) for model in self.models)
        floor = SMALLEST if (self.r >= 0).all() or (self.r <= 0).all() else 1.0
        least = max(ROUNDING, (1 - c) * RESOLUTION / 64)
        for i in range(MOST_SWEEPS + int(np.log(1e-20) / np.log(min(max(c, 0.5), 1 - 1e-12)))):
            u = self.continued(v, self.r, u)
            updated = reduce(np.maximum, u)
            change = np.abs(updated - v)
            if (change <= least * np.maximum(np.abs(updated), floor * np.abs(updated).max()) + noise).all():
                v = updated
                break
            if i < num_faster:
                last, v = v, v + tau * (updated - v) + mu * (v - last)
                continue
            v = updated
            if c > SLOW and change.max() < best / 2 and change.max() > 1e-15 * np.abs(v).max():
                best = change.max()
                v = self.evaluated(np.argmax(u, axis=0), v)
        u = np.stack(self.continued(v, self.r, u))
        return _Solved(u, u.max(axis=0), float((noise + c * change.max()) / (1 - c)))

    def evaluated(self, choice: Int[np.ndarray, "S"], v: StateValues) -> StateValues:
        """V of a fixed choice κ at switches, V = U_κ, from a first v."""
        nothing, states = np.zeros_like(self.r), np.arange(len(v))

        def left(x: StateValues) -> StateValues:
            return x - np.stack(self.continued(x, nothing))[choice, states]

        residual = np.stack(self.continued(v, self.r))[choice, states] - v
        return v + bicgstab(left, residual, np.abs(residual).max() * 1e-3, MOST_PRODUCTS)


def _closed_loop(ghms: GHMs, reward: Reward | ArrayLike, alpha: float) -> tuple[_Loop, Reward]:
    mdp = ghms.mdp
    checked = mdp.checked_reward(reward)
    pis = np.stack([np.asarray(policy, float) for policy in ghms.policies])
    models = tuple(ghms.segment(k, alpha) for k in range(len(pis)))
    return _Loop(mdp, models, pis, check_range(mdp.r(checked), ghms.gamma), ghms.gamma, alpha), checked
