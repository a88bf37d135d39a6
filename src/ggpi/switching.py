"""Geometric switching policies (GSPs): follow π₁, switch with probability α₁ to π₂, and so on.

    ν = π₁ →(α₁) π₂ →(α₂) … πₙ

After every step but before the next action, the segment of πᵢ ends with probability αᵢ; the next
action is then chosen by πᵢ₊₁. So πᵢ acts for Geometric(αᵢ) ≥ 1 steps and πₙ forever.
Repeating the last policy changes nothing: π₁ → π₂ → π₂ is π₁ → π₂. Repeating another one does:
π₁ → π₁ → π₂ stays longer with π₁. A GSP is stored without repeats of its last policy, so that
equal behaviour with equal (policies, α) means equal objects.

    β  = γ (1 − α), derived and never given beside α
    wₘ = (1−γ)/(1−βₘ) · ∏_{i<m} (γ−βᵢ)/(1−βᵢ)  for m < n,   wₙ = ∏_{i<n} (γ−βᵢ)/(1−βᵢ)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import NamedTuple, SupportsIndex

import numpy as np

from ggpi.mdp.tabular import check_gamma
from ggpi.types import Scalar, real, reals, whole


def check_alpha(alpha: object) -> float:
    """α as a Python float; raises unless it is a number in (0, 1]."""
    number = real(alpha, "α, the probability of a switch,")
    if not 0 < number <= 1:
        raise ValueError(f"α, the probability of a switch, lies in (0, 1], got {number}")
    return number


def beta_of(gamma: Scalar, alpha: Scalar) -> float:
    """β = γ (1 − α): the horizon of a segment that ends with probability α."""
    return check_gamma(gamma) * (1 - check_alpha(alpha))


def composition_weights(gamma: Scalar, alphas: Sequence[Scalar]) -> np.ndarray:
    """w₁ … wₙ for n − 1 switches with the given α's; they sum to 1.

    Paper: Lem B.2, Prop 2.5, Eq 5
    """
    gamma = check_gamma(gamma)
    betas = np.array([beta_of(gamma, alpha) for alpha in alphas])
    continuing = np.cumprod(np.concatenate([[1.0], (gamma - betas) / (1 - betas)]))
    stopping = np.append((1 - gamma) / (1 - betas), 1.0)
    return continuing * stopping


class Segment(NamedTuple):
    """One segment of a switching policy; equal for GSPs that agree up to its end."""

    policy: int
    alpha: float | None
    """The probability of the switch that ends it; None for the last, which never ends."""
    horizon: float
    """Its end is distributed as μ^π at this horizon: β, or γ for the last."""
    start: float
    """The weight of r^π where it starts, with the action that starts it; 0 for the first."""
    end: float
    """The weight of r^π where it ends."""


def segments(policies: Sequence[int], alphas: Sequence[float], gamma: float) -> tuple[Segment, ...]:
    """The segments of π₁ →(α₁) … πₙ; repeats of the last policy are kept as they are.

    Segment m < n is drawn from μ^{πₘ} at βₘ, the last from μ^{πₙ} at γ; πₘ chooses the action that starts segment m.
    With r(x, a) earned on leaving,

        Q^ν = r(x, a) + γ/(1−γ) · E[ Σ_{m<n} wₘ ((1−αₘ) r^{πₘ} + αₘ r^{πₘ₊₁})(X^(m)) + wₙ r^{πₙ}(X′) ].

    Read segment by segment, r^π of its own policy alone counts at both its ends: with weight αₘ₋₁wₘ₋₁ where it starts
    and (1−αₘ)wₘ where it ends (wₙ for the last). Both actions at a switch are needed: to count only the one that
    continues is biased.

    Paper: Thm 3.2
    """
    weights = composition_weights(gamma, alphas).tolist()
    horizons = [*(beta_of(gamma, alpha) for alpha in alphas), gamma]
    starts = [0.0, *(alpha * w for alpha, w in zip(alphas, weights, strict=False))]
    ends = [*((1 - alpha) * w for alpha, w in zip(alphas, weights, strict=False)), weights[-1]]
    return tuple(map(Segment, policies, (*alphas, None), horizons, starts, ends))


@dataclass(frozen=True)
class GSP:
    """ν = π₁ →(α₁) … πₙ as indices of base policies and one α per switch.

    Paper: Def 3.1
    """

    policies: tuple[int, ...]
    alphas: tuple[float, ...] = ()

    def __post_init__(self):
        policies = tuple(whole(policy, "the index of a base policy", least=None) for policy in self.policies)
        alphas = tuple(map(check_alpha, self.alphas))
        if not policies:
            raise ValueError("a switching policy needs at least one base policy, got none")
        if min(policies) < 0:
            raise IndexError(f"indices of base policies are not negative, got {policies}")
        if len(alphas) != len(policies) - 1:
            raise ValueError(
                f"{len(policies)} policies have {len(policies) - 1} switches, got {len(alphas)} α's"
            )
        length = len(policies)
        while length > 1 and policies[length - 1] == policies[length - 2]:
            length -= 1
        object.__setattr__(self, "policies", policies[:length])
        object.__setattr__(self, "alphas", alphas[: length - 1])

    def __len__(self) -> int:
        return len(self.policies)

    @property
    def head(self) -> int:
        return self.policies[0]

    @property
    def suffix(self) -> GSP | None:
        """π₂ →(α₂) … πₙ, what is left after the first switch; None for a single policy."""
        return GSP(self.policies[1:], self.alphas[1:]) if len(self) > 1 else None

    def segments(self, gamma: float) -> tuple[Segment, ...]:
        """What a sample of this GSP's future is composed of; see `segments`."""
        return segments(self.policies, self.alphas, gamma)

    def name(self, names: Sequence[str] | None = None) -> str:
        """Readable, such as `left →(1/9) up`."""
        words = [names[i] if names else f"π{i}" for i in self.policies]
        arrows = [f" →({_short(alpha)}) " for alpha in self.alphas] + [""]
        return "".join(word + arrow for word, arrow in zip(words, arrows, strict=True))

    def __str__(self) -> str:
        return self.name()


@dataclass(frozen=True)
class GSPs:
    """A set of GSPs, in order and without repeats."""

    gsps: tuple[GSP, ...]

    def __post_init__(self):
        unique = tuple(dict.fromkeys(self.gsps))
        if not unique:
            raise ValueError("the set of switching policies is empty; give at least one")
        object.__setattr__(self, "gsps", unique)

    def __len__(self) -> int:
        return len(self.gsps)

    def __iter__(self) -> Iterator[GSP]:
        return iter(self.gsps)

    def __getitem__(self, index: SupportsIndex) -> GSP:
        return self.gsps[index]

    def __contains__(self, gsp: object) -> bool:
        return gsp in self._members

    @cached_property
    def _members(self) -> frozenset[GSP]:
        return frozenset(self.gsps)

    @property
    def depth(self) -> int:
        """The length of the longest GSP."""
        return max(map(len, self.gsps))

    @property
    def alphas(self) -> frozenset[float]:
        """The α's of all switches."""
        return frozenset(alpha for gsp in self.gsps for alpha in gsp.alphas)

    @property
    def num_policies(self) -> int:
        """The least number of base policies that the indices need."""
        return 1 + max(max(gsp.policies) for gsp in self.gsps)

    def names(self, names: Sequence[str] | None = None) -> list[str]:
        return [gsp.name(names) for gsp in self.gsps]


def gsp_set(gsps: GSPs | Iterable[GSP]) -> GSPs:
    """A set of any GSPs."""
    return gsps if isinstance(gsps, GSPs) else GSPs(tuple(gsps))


def compositions(
    num_policies: int, depth: int, alpha: Scalar | Sequence[Scalar], last: int | None = None
) -> GSPs:
    """Π_m: every GSP of `depth` base policies, not necessarily distinct; with `last`, those that end in it.

    `alpha` is one number, or one per switch. With unequal α the suffixes of Π_m are not in Π_m, and its
    suffix closure is returned.

    Paper: Prop 5.1
    """
    num_policies, depth = whole(num_policies, "num_policies"), whole(depth, "depth")
    if last is not None and not 0 <= last < num_policies:
        raise IndexError(f"the last policy is one of 0 to {num_policies - 1}, got {last}")
    numbers = reals(alpha, "α")
    alphas = tuple(numbers.ravel().tolist()) * (depth - 1 if numbers.ndim == 0 else 1)
    if len(alphas) != depth - 1:
        raise ValueError(f"depth {depth} has {depth - 1} switches, got {len(alphas)} α's")
    endings = range(num_policies) if last is None else (last,)
    rows = product(*[range(num_policies)] * (depth - 1), endings)
    return suffix_closure(GSP(row, alphas) for row in rows)


def missing_suffixes(gsps: GSPs | Iterable[GSP]) -> tuple[GSP, ...]:
    """The suffixes that the set lacks, with the suffixes of these.

    Paper: Def 4.1
    """
    gsps = gsp_set(gsps)
    missing: dict[GSP, None] = {}
    for gsp in gsps:
        suffix = gsp.suffix
        while suffix is not None:
            if suffix not in gsps:
                missing[suffix] = None
            suffix = suffix.suffix
    return tuple(missing)


def is_suffix_closed(gsps: GSPs | Iterable[GSP]) -> bool:
    """Whether the suffix of every member is a member.

    Paper: Def 4.1
    """
    return not missing_suffixes(gsps)


def suffix_closure(gsps: GSPs | Iterable[GSP]) -> GSPs:
    """The set with its missing suffixes added at the end.

    Paper: Def 4.1
    """
    gsps = gsp_set(gsps)
    return GSPs((*gsps, *missing_suffixes(gsps)))


def _short(alpha: float) -> str:
    """0.25 as it is, 0.1111… as 1/9."""
    fraction = Fraction(alpha).limit_denominator(99)
    exact = abs(float(fraction) - alpha) < 1e-12
    return str(fraction) if exact and len(repr(alpha)) > 6 else f"{alpha:g}"
