"""Fuzzed MDPs: every answer is that of the Bellman equations, or the error names what is wrong.

Small random MDPs, dense and sparse, with terminals, repeated entries, tiny probabilities, γ up to 1 − 1e-12, α down to
1e-9, rewards of all forms from 1e-300 to 1e300; and one in three with something wrong: numbers that are not finite,
shapes, types, indices. Answers are compared with `numpy.linalg.solve` of the equations over pairs (x, a), within

    ERROR · (S·A)² · ε/(1−γ) · |Q|,     ε = 2⁻⁵², |Q| the largest Q of the absolute rewards

which bounds what rounding P alone does to Q; numbers near the smallest one of a float add TINY/(1−γ)².
"""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from campaign import Campaign, main

import ggpi
import ggpi.improvement
from ggpi import TabularMDP, TabularPolicy, rewards
from ggpi.mdp import optimal
from ggpi.mdp.ties import RESOLUTION

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
ERROR = 64.0
FORMS = ("state", "state_action", "arrival")
OPERATIONS = ("q", "evaluate", "improve", "improve_head", "policy_iteration", "howard", "q_star", "step")
WRONG_NUMBERS = (
    np.nan,
    np.inf,
    -np.inf,
    -1.0,
    2.0,
    1e308,
    "x",
    None,
    1j,
    [0.5],
    np.complex64(0.5),
    object(),
    b"1",
)


WRONG = (
    "P entry",
    "P shape",
    "P type",
    "reward entry",
    "reward shape",
    "gamma",
    "alpha",
    "policy",
    "terminal",
    "state",
)


class Case(NamedTuple):
    """What a call is given."""

    operation: str
    P: Any
    terminal: Any
    form: str
    reward: Any
    gamma: Any
    alpha: Any
    policies: list[Any]
    wrong: str
    """What is wrong with it; nothing if it is empty."""


def make(rng: np.random.Generator, folder: Path) -> Case:
    """A case: right throughout, or with one thing wrong."""
    S, A = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    P = _kernel(rng, S, A)
    terminal = None
    if rng.random() < 0.4:
        terminal = rng.random(S) < 0.4
        P[terminal] = np.eye(S)[terminal][:, None, :]
    form = FORMS[rng.integers(3)]
    r = rng.normal(size=(S, A) if form == "state_action" else S)
    r = np.round(r) if rng.random() < 0.3 else np.abs(r) if rng.random() < 0.3 else r
    r = r * 10.0 ** (rng.integers(-300, 301) if rng.random() < 0.3 else rng.integers(-12, 13))
    gamma = float(
        rng.choice([0.0, 1e-300, 1e-9, 0.3, 0.9, 0.99, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, rng.random()])
    )
    alpha = float(rng.choice([1.0, 0.5, 1 / 9, 1e-3, 1e-9, 1 - rng.random()]))
    policies = [_rows(rng, (S, A)) for _ in range(int(rng.integers(1, 3)))]
    case = Case(OPERATIONS[rng.integers(len(OPERATIONS))], P, terminal, form, r, gamma, alpha, policies, "")
    if rng.random() < 1 / 3:
        case = _spoiled(case, rng)
    usual = isinstance(case.P, np.ndarray) and case.P.ndim == 3 and case.P.size
    return case._replace(P=_laid_out(case.P, rng)) if usual else case


def _rows(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Distributions: spread, deterministic, nearly so, or with tiny entries."""
    kind = rng.integers(4)
    if kind == 0:
        return np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
    rows = rng.dirichlet(np.full(shape[-1], (1.0, 0.05, 0.3)[kind - 1]), shape[:-1])
    rows = np.where(rows > 0, rows, 1e-300) if kind == 2 else rows
    return rows / rows.sum(axis=-1, keepdims=True)


def _kernel(rng: np.random.Generator, S: int, A: int) -> np.ndarray:
    P = _rows(rng, (S, A, S))
    if rng.random() < 0.2:  # an action twice
        P[:, -1] = P[:, 0]
    if rng.random() < 0.2:  # an entry next to nothing
        P[0, 0] = np.eye(S)[0] * (1 - 1e-15) + 1e-15 / S
    if rng.random() < 0.1:  # off by as much as is accepted
        P = P * (1 + 9e-7 * rng.uniform(-1, 1, (S, A, 1)))
    return P


def _laid_out(P: np.ndarray, rng: np.random.Generator) -> Any:
    """Dense, in some type and order, or sparse, perhaps with repeated entries."""
    kind = rng.integers(5)
    if kind == 0 or P.dtype.kind != "f":
        return P
    if kind == 1:
        return np.asfortranarray(P)
    flat = scipy.sparse.coo_array(P.reshape(-1, P.shape[-1]))
    if kind == 2:
        return flat
    if kind == 3:
        halves = np.concatenate([flat.data / 2, flat.data / 2])
        return scipy.sparse.coo_array(
            (halves, (np.tile(flat.row, 2), np.tile(flat.col, 2))), shape=flat.shape
        )
    return scipy.sparse.csr_matrix(flat)


def _spoiled(case: Case, rng: np.random.Generator) -> Case:
    """The case with one thing wrong."""
    odd: Any = WRONG_NUMBERS[rng.integers(len(WRONG_NUMBERS))]
    wrong = WRONG[rng.integers(len(WRONG))]
    match wrong:
        case "P entry":
            return case._replace(P=_with_entry(case.P, odd, rng), wrong=wrong)
        case "P shape":
            shapes = (case.P[0], case.P[:, :, :-1], case.P[:0], case.P[None], np.float64(1.0), case.P[:, :0])
            return case._replace(P=shapes[rng.integers(len(shapes))], wrong=wrong)
        case "P type":
            types: tuple[Any, ...] = (
                case.P.astype(complex),
                case.P.astype(str),
                case.P.astype(object),
                "P",
                None,
                3,
                {},
            )
            return case._replace(P=types[rng.integers(len(types))], wrong=wrong)
        case "reward entry":
            return case._replace(reward=_with_entry(case.reward, odd, rng), wrong=wrong)
        case "reward shape":
            shapes = (
                case.reward[:-1],
                case.reward[None],
                np.float64(1.0),
                case.reward[..., None],
                [[1.0], [1.0, 2.0]],
            )
            return case._replace(reward=shapes[rng.integers(len(shapes))], wrong=wrong)
        case "gamma":
            return case._replace(gamma=np.nextafter(1, 0) if rng.random() < 0.2 else odd, wrong=wrong)
        case "alpha":
            return case._replace(alpha=odd, wrong=wrong)
        case "policy":
            pi = case.policies[0]
            return case._replace(
                policies=[pi[:-1] if rng.random() < 0.3 else _with_entry(pi, odd, rng)], wrong=wrong
            )
        case "terminal":
            flags: tuple[Any, ...] = (
                np.ones(len(case.P) + 1),
                np.full(len(case.P), 0.5),
                "x",
                ["a"] * len(case.P),
                [None],
            )
            return case._replace(terminal=flags[rng.integers(len(flags))], wrong=wrong)
    return case._replace(operation="step", wrong=wrong)


def _with_entry(array: np.ndarray, value: Any, rng: np.random.Generator) -> np.ndarray:
    changed = array.astype(object)
    changed[tuple(rng.integers(size) for size in array.shape)] = value
    try:
        return changed.astype(complex if isinstance(value, complex | np.complexfloating) else float)
    except (TypeError, ValueError):
        return changed


def check(case: Case) -> str:
    """The answer compared with the equations; errors of the library are documented if they are ours."""
    warnings.simplefilter("error")
    try:
        return _answered(case)
    except (ValueError, TypeError, IndexError, ArithmeticError) as error:
        innermost = error.__traceback__
        while innermost is not None and innermost.tb_next is not None:
            innermost = innermost.tb_next
        where = innermost.tb_frame.f_globals.get("__name__", "") if innermost else ""
        if not where.startswith("ggpi."):
            raise AssertionError(f"{case.wrong or 'nothing wrong'}: {error!r} comes from {where}") from error
        if (
            not case.wrong
            and "give values beyond" not in str(error)
            and "is known only within" not in str(error)
        ):
            raise AssertionError(f"nothing is wrong, but {error!r}") from error
        return f"{case.operation}: {type(error).__name__}"


def _answered(case: Case) -> str:
    mdp = TabularMDP(case.P, case.terminal)
    reward = getattr(rewards, case.form)(case.reward)
    if case.operation == "step":
        _check_step(mdp, case)
        return "step: right"
    policies = [TabularPolicy(pi) for pi in case.policies]
    truth = functools.cache(
        lambda: Truth(mdp, reward, case.gamma)
    )  # after the library, which checks its arguments
    getattr(sys.modules[__name__], f"_check_{case.operation}")(mdp, reward, policies, case, truth)
    if case.wrong and not _harmless(case):
        raise AssertionError(f"{case.wrong} was wrong, and an answer came: {case}")
    return f"{case.operation}: right"


def _harmless(case: Case) -> bool:
    """Whether what was spoiled may have an answer: a reward of another number, or what the call does not use."""
    if case.wrong in (
        "reward entry",
        "P entry",
        "policy",
        "P type",
        "reward shape",
        "P shape",
        "terminal",
        "state",
    ):
        return True  # the truth is computed from what was given, so an answer is right or was compared
    return case.wrong == "alpha" and (case.operation in ("q", "howard", "q_star") or case.alpha == [0.5])


class Truth:
    """Q of policies by NumPy's solver, over pairs; and how far rounding may lead from it."""

    def __init__(self, mdp: TabularMDP, reward: Any, gamma: Any):
        S, A = mdp.num_states, mdp.num_actions
        P = mdp.kernel.toarray() if mdp.is_sparse else mdp.kernel
        leaving = ~np.repeat(mdp.terminal, A)
        self.P, self.gamma, self.shape = P, gamma, (S, A)
        values = np.asarray(reward.values, float)
        if reward.form == "arrival":
            values = np.where((P[leaving] > 0).any(axis=0), values, 0.0)
            r, sizes = P @ values, P @ np.abs(values)
        else:
            r = np.repeat(values, A) if reward.form == "state" else values.ravel()
            sizes = np.abs(r)
        self.r = np.where(leaving, r, 0.0)
        self.size = np.where(leaving, sizes, 0.0).max()

    def q(self, path: list[np.ndarray], alphas: tuple[float, ...] = ()) -> np.ndarray:
        """Q of π₁ →(α₁) … πₙ, from its own Bellman equation; rewards scaled to 1 first."""
        r, identity = self.r / (self.size or 1.0), np.eye(len(self.r))
        q, switched = np.zeros(len(self.r)), np.zeros(identity.shape)
        for pi, alpha in reversed(list(zip(path, (*alphas, None), strict=True))):
            moved = np.einsum("iy,yb->iyb", self.P, pi).reshape(identity.shape)
            if alpha is None:
                q = np.linalg.solve(identity - self.gamma * moved, r)
            else:
                q = np.linalg.solve(
                    identity - self.gamma * (1 - alpha) * moved, r + self.gamma * alpha * switched @ q
                )
            switched = moved
        return (q * (self.size or 1.0)).reshape(self.shape)

    def bound(self) -> float:
        """What rounding may change in Q."""
        rest = 1 - self.gamma
        return ERROR * len(self.r) ** 2 * EPS / rest * (self.size / rest) + TINY / rest**2

    def compare(self, found: np.ndarray, expected: np.ndarray, slack: float = 1.0) -> None:
        assert found.shape == expected.shape, (found.shape, expected.shape)
        assert np.isfinite(found).all(), found
        apart = np.abs(found - expected).max()
        assert apart <= slack * self.bound(), f"off by {apart}, the bound is {slack * self.bound()}"


def _check_step(mdp: TabularMDP, case: Case) -> None:
    rng = np.random.default_rng(0)
    if case.wrong == "state":
        odd: tuple[Any, ...] = (-1, mdp.num_states, 0.5, "x", np.nan, 1j, None)
        for state in odd:
            try:
                mdp.step(state, 0, rng)
            except (IndexError, TypeError) as error:
                assert "states" in str(error), error
            else:
                raise AssertionError(f"a step was taken from {state!r}")
    state, action = (part.ravel() for part in np.indices((mdp.num_states, mdp.num_actions)))
    P = mdp.kernel.toarray() if mdp.is_sparse else mdp.kernel
    for _ in range(8):
        landed = mdp.step(state, action, rng)
        assert (P[np.arange(len(P)), landed] > 0).all(), "an impossible transition"
    flat = mdp._sums
    ends = mdp.P.indptr if mdp.is_sparse else np.arange(0, P.size + 1, P.shape[1])
    implied = np.diff(flat, prepend=0.0)
    implied[ends[:-1]] = flat[ends[:-1]]
    given = mdp.P.data if mdp.is_sparse else P.ravel()
    np.testing.assert_allclose(implied, given, rtol=0, atol=4 * EPS)


def _check_q(mdp, reward, policies, case, truth) -> None:
    q = mdp.q(policies[0], reward, case.gamma)
    truth().compare(q, truth().q([policies[0].pi]))


def _evaluated(mdp, reward, policies, case):
    gsps = ggpi.compositions(len(policies), 2, case.alpha)
    return gsps, ggpi.evaluate(gsps, ggpi.exact_ghms(mdp, policies, case.gamma, case.alpha), reward)


def _check_evaluate(mdp, reward, policies, case, truth) -> None:
    gsps, q = _evaluated(mdp, reward, policies, case)
    for gsp, found in zip(gsps, q.array, strict=True):
        truth().compare(found, truth().q([policies[i].pi for i in gsp.policies], gsp.alphas))


def _check_improve(mdp, reward, policies, case, truth) -> None:
    _, q = _evaluated(mdp, reward, policies, case)
    pi = ggpi.improve(q).pi
    best = q.array.max(axis=0)
    assert (np.where(pi > 0, best, np.inf).min(axis=1) >= best.max(axis=1) - truth().bound()).all()
    assert (pi[np.arange(len(pi)), best.argmax(axis=1)] > 0).all()
    _no_worse(truth(), pi, (pi * best).sum(axis=1))


def _check_improve_head(mdp, reward, policies, case, truth) -> None:
    _, q = _evaluated(mdp, reward, policies, case)
    _no_worse(truth(), ggpi.improvement.improve_head(q).pi, q.v.max(axis=0))


def _no_worse(truth: Truth, pi: np.ndarray, v: np.ndarray) -> None:
    """V^π ≥ v, as Theorem 4.2 promises; a tolerance of ties costs it 1/(1−γ) times."""
    lost = 2 * truth.bound() + RESOLUTION / (1 - truth.gamma) * (truth.size / (1 - truth.gamma))
    assert ((pi * truth.q([pi])).sum(axis=1) >= v - lost).all()


def _check_policy_iteration(mdp, reward, policies, case, truth) -> None:
    found = ggpi.policy_iteration(mdp, reward, case.gamma, case.alpha, start=policies[0], max_iterations=50)
    _is_optimal(truth(), found.policy.pi)


def _check_howard(mdp, reward, policies, case, truth) -> None:
    found = optimal.howard(mdp, reward, case.gamma, policy=policies[0])
    assert found.stopped == "stable policy", found.stopped
    truth().compare(found.q, truth().q([found.pi]))
    _is_optimal(truth(), found.pi)


def _is_optimal(truth: Truth, pi: np.ndarray) -> None:
    """T V ≤ V within what ties may cost."""
    q = truth.q([pi])
    gain = q.max(axis=1) - (pi * q).sum(axis=1)
    assert (gain <= 2 * truth.bound() + RESOLUTION * truth.size / (1 - truth.gamma)).all(), gain


def _check_q_star(mdp, reward, policies, case, truth) -> None:
    """Within the tolerance of the Bellman optimality equation, which has one solution."""
    mdp.q(policies[0], reward, case.gamma)
    tolerance = max(8 * truth().bound(), 1e-8 * truth().size / (1 - case.gamma), TINY)
    q = optimal.q_star(mdp, reward, case.gamma, tolerance=tolerance)
    assert np.isfinite(q).all(), q
    ahead = case.gamma * (truth().P @ q.max(axis=1)).reshape(q.shape)
    residual = truth().r.reshape(q.shape) + ahead - q
    assert np.abs(residual).max() <= 2 * tolerance + truth().bound(), residual


MDPS = Campaign("mdps", make, check, documented=())

if __name__ == "__main__":
    sys.exit(main(MDPS))
