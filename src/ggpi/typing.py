"""Array axes and the two protocols of the library.

Axes: S states, A actions, N switching policies, K base policies, D state dimension.
Exact arrays are NumPy float64; sampled and learned ones are JAX float32.
"""

from __future__ import annotations

from typing import Any, Protocol, SupportsFloat, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Real

Key = PRNGKeyArray
StateValues = Float[np.ndarray, "S"]
ActionValues = Float[np.ndarray, "S A"]
Mask = Bool[np.ndarray, "S"]
Indices = Int[np.ndarray, "..."]
Scalar = SupportsFloat
"""A real number of Python, NumPy or JAX; `ggpi.mdp.check_gamma` and its like make a float of it."""
Numbers = Real[np.ndarray, "..."] | Real[Array, "..."]


@runtime_checkable
class Policy(Protocol):
    """A Markov policy: `sample` returns the action that is executed.

    Beyond the paper: the interface that tabular, neural and foreign policies share
    """

    @property
    def name(self) -> str: ...

    def sample(self, state: Any, *, key: Key) -> Any: ...

    def mode(self, state: Any) -> Any: ...


@runtime_checkable
class GHM(Protocol):
    """A generative model of μ(·|x, a), the state after a geometric time.

    Paper: Def 2.2, Prop 2.3
    """

    def sample(self, state: Any, action: Any, *, key: Key) -> Any: ...
