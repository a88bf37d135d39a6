"""Exact evaluation is for exact models."""

from types import SimpleNamespace

import numpy as np
import pytest

import ggpi
from ggpi.ghm import GHMs
from worlds import bellman_q_gsp


def test_learned_models_are_refused():
    policy = SimpleNamespace(name="mine")
    learned = GHMs((policy,), 0.9, (), ([SimpleNamespace()],))
    with pytest.raises(ValueError, match=r"ggpi\.exact_ghms, got learned ones: .*GGPIAgent.*\.plan"):
        ggpi.evaluate([ggpi.GSP((0,))], learned, [1.0])


def test_values_solve_the_switching_policys_own_bellman_equation():
    """One world of four states with unequal α; the laws do it for many."""
    rng = np.random.default_rng(0)
    P, r = rng.dirichlet(np.ones(4), (4, 2)), rng.normal(size=(4, 2))
    pis = rng.dirichlet(np.ones(2), (3, 4))
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), list(pis), 0.9, (0.5, 0.2))
    gsps = [
        ggpi.GSP((0, 1, 2), (0.5, 0.2)),
        ggpi.GSP((0, 2, 1), (0.2, 0.5)),
        ggpi.GSP((2, 0), (0.2,)),
        ggpi.GSP((1,)),
    ]
    q = ggpi.evaluate(gsps, ghms, r)
    for gsp in gsps:
        np.testing.assert_allclose(q[gsp], bellman_q_gsp(P, pis, gsp, r, 0.9), rtol=1e-10)
