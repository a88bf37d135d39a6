"""Compiled functions are the functions, also where XLA does not know an option."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi import compiling


def test_it_computes_the_same():
    x, w = jnp.ones((3, 5, 4)), jnp.full((3, 4, 2), 0.5)
    np.testing.assert_allclose(compiling.fast_jit(lambda x, w: x @ w)(x, w), x @ w)


def test_arguments_that_are_no_arrays_are_part_of_the_program():
    def repeated(x, *, times):
        return jnp.concatenate([x] * times)

    assert compiling.fast_jit(repeated)(jnp.ones(2), times=3).shape == (6,)
    assert compiling.fast_jit(repeated).__name__ == "repeated"


def test_unknown_options_are_left_out(monkeypatch):
    monkeypatch.setattr(compiling, "OPTIONS", {"xla_cpu_no_such_option": "1"})
    compiling._understood.cache_clear()
    assert compiling._understood() == {}
    compiling._understood.cache_clear()


def test_other_errors_are_raised(monkeypatch):
    monkeypatch.setattr(compiling, "OPTIONS", {"xla_cpu_experimental_ynn_fusion_type": "nonsense"})
    compiling._understood.cache_clear()
    with pytest.raises(jax.errors.JaxRuntimeError, match="nonsense"):
        compiling._understood()
    compiling._understood.cache_clear()
