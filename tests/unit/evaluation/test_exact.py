"""Exact evaluation is for exact models."""

from types import SimpleNamespace

import jax
import pytest

import ggpi
from ggpi.ghm import GHMs


@pytest.mark.parametrize("evaluate", [ggpi.evaluate, ggpi.evaluate_sampled])
def test_learned_models_are_refused(evaluate):
    policy = SimpleNamespace(name="mine")
    learned = GHMs((policy,), 0.9, (), {0.9: [SimpleNamespace()]})
    options = {} if evaluate is ggpi.evaluate else {"num_samples": 2, "key": jax.random.key(0)}
    with pytest.raises(ValueError, match=r"ggpi\.exact_ghms, got learned ones: .*GGPIAgent.*\.plan"):
        evaluate([ggpi.GSP((0,))], learned, [1.0], **options)
