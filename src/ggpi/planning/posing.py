"""What a planner by shooting may choose from, as its settings and the models say; checked before anything is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from ggpi.ghm.base import GHMs
from ggpi.ghm.network_sampler import network_sampler
from ggpi.ghm.samplers import ModelSampler, TableSampler, place_of
from ggpi.planning.chains import Problem, problem_of
from ggpi.planning.choices import Choices
from ggpi.planning.plans import all_plans
from ggpi.planning.shooting import AbstractShooter, Proposals
from ggpi.rewards import Reward
from ggpi.switching import beta_of, check_alpha
from ggpi.types import Sampler, reals, whole


def posed_shooting(
    planner: AbstractShooter,
    models: GHMs | Sampler,
    reward: Reward,
    state: ArrayLike,
    terminal: Callable[[Any], Any] | None = None,
) -> Problem:
    """What a planner by shooting is to solve, after its checks.

    Args:
        planner: the settings.
        models: models, or a Sampler of them.
        reward: a reward that JAX can trace.
        state: one state.
        terminal: whether a state ends an episode.
    """
    depth = whole(planner.depth, "depth")
    values, span = _switches(planner, models, depth)
    codes, bounds, count = _pool(planner.proposals, models, jnp.asarray(state))
    plain = problem_of(all_plans(1, 1, 1.0), _sampler(models, terminal), reward, state)
    choices = Choices(codes, bounds, count, values, span, depth)
    problem = dataclasses.replace(plain, choices=choices)
    planner.check(problem)
    return problem


def _sampler(models: GHMs | Sampler, terminal: Callable[[Any], Any] | None) -> Sampler:
    if not isinstance(models, GHMs):
        return models
    return models.sampler(terminal) if models.network is None else network_sampler(models, terminal)


def _num_policies(models: GHMs | Sampler) -> int:
    if isinstance(models, GHMs):
        return len(models.policies)
    if isinstance(models, ModelSampler | TableSampler):
        return len(models.bank)
    raise TypeError(
        f"a planner by shooting needs to know how many policies there are, which a {type(models).__name__} does not "
        "say; give models, or their sampler()"
    )


def _switches(
    planner: AbstractShooter, models: GHMs | Sampler, depth: int
) -> tuple[tuple[float, ...], tuple[float, float] | None]:
    """The α's to choose from, or their range."""
    if planner.alphas is not None and planner.alpha_range is not None:
        raise ValueError("give either alphas or an alpha_range, not both")
    own = models.alphas if isinstance(models, GHMs) else ()
    network = models.network if isinstance(models, GHMs) else None
    if planner.alpha_range is not None:
        span = tuple(map(check_alpha, planner.alpha_range))
        if len(span) != 2 or not span[0] < span[1]:
            raise ValueError(f"alpha_range is (least, largest), got {planner.alpha_range}")
        if network is None:
            raise ValueError(
                f"these models were trained apart, for α in {list(own)}: give alphas= among them, or train one network "
                'for a whole range, ggpi.fit(…, alpha="any")'
            )
        return ((), span) if depth > 1 else ((), None)
    if depth == 1:
        return (), None
    given = own if planner.alphas is None else reals(planner.alphas, "alphas").ravel().tolist()
    values = tuple(dict.fromkeys(map(check_alpha, given)))
    if not values:
        raise ValueError("no α to switch with: give alphas=, or an alpha_range=")
    for alpha in values:
        if isinstance(models, GHMs) and network is None:
            models.horizon(alpha)
        elif isinstance(models, ModelSampler | TableSampler):
            place_of(beta_of(models.gamma, alpha), models.horizons)
    return values, None


def _pool(
    proposals: Proposals | None, models: GHMs | Sampler, state: Array
) -> tuple[Array | None, tuple[Array, Array] | None, int]:
    """Codes to choose from, the bounds of those that the models know, and how many policies or codes there are."""
    if proposals is None:
        return None, None, _num_policies(models)
    if not isinstance(models, GHMs):
        raise ValueError(f"proposals are codes of models, which a {type(models).__name__} does not know")
    network = models.shared_network()
    known = np.asarray(network.codes)
    bounds = known.min(axis=0), known.max(axis=0)
    if callable(proposals):
        made = jax.eval_shape(lambda x, key: proposals(x, key=key), state, jax.random.key(0))
        codes, shape = None, made.shape
    else:
        codes = reals(proposals, "proposals")
        shape = codes.shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"proposals are codes [C, {known.shape[1]}], at least one, got shape {list(shape)}")
    network.with_codes(np.zeros(shape))
    if codes is not None:
        _check_codes(codes, *bounds)
    pool = None if codes is None else jnp.asarray(codes, jnp.float32)
    return pool, (jnp.asarray(bounds[0]), jnp.asarray(bounds[1])), shape[0]


def _check_codes(codes: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Raises for codes that the models do not know."""
    slack = 1e-5 * np.maximum(np.abs(low), np.abs(high))
    outside = ~((codes >= low - slack) & (codes <= high + slack)).all(axis=1)
    if outside.any():
        raise ValueError(
            f"{outside.sum()} of {len(codes)} proposals lie outside of the codes that the models know, "
            f"{said(low)} to {said(high)}, such as {said(codes[outside][0])}; leave these out, or trust the network "
            "there: ghms.with_policies(…) with policies of such codes"
        )


def said(code: np.ndarray) -> str:
    """A code in a message."""
    return np.array2string(code, precision=3, threshold=8)
