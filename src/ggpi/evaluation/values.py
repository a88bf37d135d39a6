"""Q of a set of switching policies, as arrays that remember their set."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ggpi._jax.shapes import Lead, check_shape
from ggpi.mdp.ties import UNKNOWN, Accuracy
from ggpi.switching import GSP, GSPs


@dataclass(frozen=True, eq=False)
class QValues:
    """Q^ν(x, a) of a set of GSPs: an array (gsp, state, action), and the set; `stderr` when it was sampled."""

    array: np.ndarray
    gsps: GSPs
    policies: Sequence[Any]
    stderr: np.ndarray | None = None
    accuracy = UNKNOWN
    """How far values can be told apart, unless `with_accuracy` says better; not a field, so it is not saved."""

    def with_accuracy(self, accuracy: Accuracy) -> QValues:
        """The same values, which are known to be this accurate."""
        known = dataclasses.replace(self)
        object.__setattr__(known, "accuracy", accuracy)
        return known

    @cached_property
    def sizes(self) -> np.ndarray:
        """|Q|, the Q-values of the absolute rewards: what rounding errors are relative to."""
        return np.abs(self.array) if self.accuracy.sizes is None else self.accuracy.sizes()

    def check_parts(self, lead: Lead) -> None:
        """Values of every switching policy over the policies that there are."""
        check_shape("array", self.array, (len(self.gsps), *self.array.shape[1:]))
        if self.stderr is not None:
            check_shape("stderr", self.stderr, self.array.shape)
        if self.gsps.num_policies > len(self.policies):
            raise ValueError(f"{self.gsps.num_policies} policies are named, there are {len(self.policies)}")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __getitem__(self, gsp: int | GSP) -> np.ndarray:
        """Q [S, A] of one GSP, by its place or by itself."""
        return self.array[self.gsps.gsps.index(gsp) if isinstance(gsp, GSP) else gsp]

    @property
    def v(self) -> np.ndarray:
        """V^ν(x) = Σ_a π₁(a|x) Q^ν(x, a), with π₁ the head of ν: an array (gsp, state)."""
        return self.of_heads(self.array)

    def of_heads(self, values: np.ndarray) -> np.ndarray:
        """Σ_a π₁(a|x) f(ν, x, a), with π₁ the head of ν: an array (gsp, state)."""
        heads = np.stack([np.asarray(self.policies[gsp.head]) for gsp in self.gsps])
        return np.einsum("nxa,nxa->nx", heads, values)
