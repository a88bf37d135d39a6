"""A baseline: model-predictive control on a one-step model, with as much time as depth-2 GGPI takes.

The one-step model is the same VAE at β = 0: it learns x′ from (x, a), for any behaviour policy. `ggpi.lab.walks`
unrolls it. The number of walks is chosen so that a decision takes as long as one of GGPI.
"""

import functools
from dataclasses import replace

from ggpi.ghm.base import AbstractGHM
from ggpi.lab.agents import Decide
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import FitConfig, learn
from ggpi.lab.cache import kept
from ggpi.lab.walks import Walks, over_walks
from ggpi.learning.losses import CETD
from ggpi.storage.pretrained import pretrained

LENGTH = 40
"""Steps of a walk: γ⁴⁰ = .015."""
WALKS = 32
"""Walks for each decision: as long as a depth-2 plan of 16 × 100 samples takes, see `benchmarks/planning.py`."""


@functools.cache
def one_step_model(config: FitConfig) -> AbstractGHM:
    """The model of x′ given (x, a), trained as long as the GHMs are."""
    one_step = replace(config, recipe=replace(config.recipe, loss=CETD(n_step=1)))
    policy = pretrained("ant-policies")[:1]
    ghms = learn(one_step, policy, 0.0, (), kept(config, "ant-ghms") / "one-step")
    return ghms.segment(0, None)


def mpc(config: FitConfig, radius: float, num_walks: int = WALKS) -> Decide:
    """Model-predictive control over walks of the base policies."""
    return over_walks(one_step_model(config), pretrained("ant-policies"), walks(radius, num_walks))


def walks(radius: float, count: int = WALKS) -> Walks:
    """The walks of a decision."""
    return Walks(count, LENGTH, ant.ALPHA, ant.GAMMA, radius)
