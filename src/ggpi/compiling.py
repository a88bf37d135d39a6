"""Compiled functions for a CPU's matrix products.

XLA hands products of matrices to one of two libraries. The one that it prefers loses half of the machine's rate
on stacks of small matrices, as models of several policies and horizons are; `fast_jit` asks for the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax

OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": "512"}
"""No products by YNNPACK, they go to Eigen; and the widest registers that the CPU has."""


def fast_jit(function: Callable[..., Any], *, donate: Literal["none", "all-except-first"] = "none") -> Any:
    """`eqx.filter_jit` with these options, for calls from Python (a function that is compiled as a part of
    another one has that one's options).

    Beyond the paper: training and sampling at half of the rate of one large product
    """

    @functools.cache
    def compiled() -> Any:
        jit: Any = eqx.filter_jit  # whose types leave out that it hands options on to jax.jit
        return jit(function, donate=donate, compiler_options=_understood())

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled()(*args, **kwargs)

    return call


@functools.cache
def _understood() -> dict[str, str]:
    """The options, or none of them where XLA does not know them."""
    try:
        jax.jit(lambda: 0, compiler_options=OPTIONS)()
    except Exception as error:  # XLA's own class of errors is not public
        if "No such compile option" not in str(error):
            raise
        return {}
    return OPTIONS
