"""Estimates that compose models of β refuse models that have none."""

import jax
import numpy as np
import pytest

import ggpi


def test_compositions_need_models_of_beta():
    mdp = ggpi.TabularMDP(np.full((2, 1, 2), 0.5))
    ghms = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy(np.ones((2, 1)))], gamma=0.9, alpha=())
    given, options = (0, ghms, np.ones(2), 0, 0), {"num_samples": 2, "key": jax.random.key(0)}
    with pytest.raises(
        ValueError, match=r"a chain of 3 segments needs models of a horizon β.* alphas is \(\)"
    ):
        ggpi.evaluate_markov_sampled(*given, num_segments=3, **options)
    with pytest.raises(ValueError, match=r"alphas is \(\)"):
        ggpi.evaluate_janner_sampled(*given, **options)
    assert ggpi.evaluate_markov_sampled(*given, **options).mean == pytest.approx(10, rel=1e-5)
