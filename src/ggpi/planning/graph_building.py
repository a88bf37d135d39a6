"""`jumpy_graph`: landmarks from data, and jumps of all policies from each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Real
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from ggpi._jax.jit import fast_jit
from ggpi._jax.random import checked_key
from ggpi.data.transitions import Transitions
from ggpi.evaluation.queries import largest_call
from ggpi.ghm.base import GHMs
from ggpi.ghm.samplers import ModelSampler, TableSampler
from ggpi.planning.closed_loop import closed_loop_alpha
from ggpi.planning.jumpy_graph import Jumps, JumpyGraph, models_digest
from ggpi.planning.landmarks import CANDIDATES, FAR, choose, influence, points_of, reach_of, units_of
from ggpi.planning.snapping import snapped
from ggpi.progress import progress
from ggpi.types import Key, Numbers, Scalar, whole

AT_ONCE = 2**14
"""Jumps that are drawn by one call."""
States = Real[np.ndarray, "N *x"]
Candidates = Real[np.ndarray, "C *x"]


def jumpy_graph(
    ghms: GHMs,
    data: Transitions | ArrayLike,
    *,
    num_landmarks: int = 4_000,
    num_jumps: int = 16,
    num_neighbours: int = 4,
    alpha: Scalar | None = None,
    terminal: Callable[[Any], Any] | None = None,
    key: Key,
) -> JumpyGraph:
    """Jumps of every policy between landmarks: a graph in which `solve` finds closed-loop values for any reward.

    Time and memory are proportional to policies × landmarks × jumps.

    Args:
        ghms: the models.
        data: where landmarks are taken from: the transitions that the models learned from, or an array of states.
        num_landmarks: more of them interpolate V better; they are states of the data that are not terminal.
        num_jumps: of each policy from each landmark; more of them lower noise and the upward bias of values.
        num_neighbours: landmarks that V is interpolated from.
        alpha: one of the models' α's; not needed if they have only one.
        terminal: whether a state ends the episode, a JAX function of one state. A finite MDP knows it.
        key: the random key.
    """
    if alpha is not None:
        ghms = ghms.supporting([float(alpha)])
    alpha = closed_loop_alpha(ghms, alpha)
    counts = whole(num_landmarks, "num_landmarks"), whole(num_jumps, "num_jumps")
    if whole(num_neighbours, "num_neighbours") > counts[0]:
        raise ValueError(f"num_neighbours is at most num_landmarks, {counts[0]}, got {num_neighbours}")
    sampler = ghms.sampler(terminal)
    choice_key, jump_key = jax.random.split(checked_key(key))
    rng = np.random.default_rng(np.asarray(jax.random.key_data(choice_key)).tolist())
    candidates = _candidates(_states(data, sampler), counts[0], sampler, rng)
    units = units_of(candidates, positions := _positions(sampler))
    if isinstance(data, Transitions) and not positions and candidates.ndim == 2:
        units /= influence(data, round(1 / (1 - ghms.horizon(alpha))))
    units[_unpredicted(sampler)] = FAR
    points = points_of(candidates, units)
    rows = choose(points, counts[0], rng)
    landmarks, reach = candidates[rows], reach_of(points, points[rows])
    jumps = _jumps(sampler, ghms.horizon(alpha), landmarks, units, reach, counts[1], num_neighbours, jump_key)
    sizes = sampler.pi.shape[1:] if isinstance(sampler, TableSampler) else ()
    about = ghms.gamma, alpha, models_digest(ghms, alpha), sizes, sampler.terminal is not None
    return JumpyGraph(*about, units, reach, landmarks, jumps)


def _states(data: Transitions | ArrayLike, sampler: ModelSampler | TableSampler) -> States:
    """The states of the data, checked against those of the models."""
    if isinstance(data, Transitions):
        data.check()
    states = np.asarray(data.state if isinstance(data, Transitions) else data)
    if isinstance(sampler, TableSampler):
        num_states = sampler.pi.shape[1]
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(
                f"data of these models are numbers of states [N], got {states.dtype} {states.shape}"
            )
        if states.size and not (states.min() >= 0 and states.max() < num_states):
            raise ValueError(
                f"states are numbers from 0 to {num_states - 1}, got {states.min()} to {states.max()}"
            )
        return states.astype(np.int32)
    size = sampler.models[0].frame.state_size
    if states.ndim != 2 or states.shape[1] != size or states.dtype.kind not in "fiu":
        raise ValueError(
            f"data of these models are states [N, {size}], got {states.dtype} {list(states.shape)}"
        )
    if bad := int((~np.isfinite(states)).any(axis=1).sum()):
        raise ValueError(f"{bad} of {len(states)} states are not finite; leave them out of the data")
    return states


def _candidates(
    states: States, count: int, sampler: ModelSampler | TableSampler, rng: np.random.Generator
) -> Candidates:
    """Distinct states that are not terminal, at most ten for each landmark."""
    if len(states) < count:
        raise ValueError(
            f"num_landmarks is {count}, but there are {len(states)} states in the data; give fewer landmarks or "
            "more data"
        )
    most = CANDIDATES * count
    some = states if len(states) <= most else states[np.sort(rng.choice(len(states), most, replace=False))]
    some = np.unique(np.asarray(some, np.int32 if states.ndim == 1 else np.float32), axis=0)
    if sampler.terminal is not None:
        some = some[~np.asarray(jax.vmap(sampler.terminal)(jnp.asarray(some)), bool)]
    if len(some) < count:
        raise ValueError(
            f"num_landmarks is {count}, but the data has {len(some)} different states that are not terminal; give "
            "fewer landmarks"
        )
    return some


def _positions(sampler: ModelSampler | TableSampler) -> tuple[int, ...]:
    """The coordinates that are positions: those that models do not see, and places."""
    if isinstance(sampler, TableSampler):
        return ()
    frame = sampler.models[0].frame
    return tuple(i for i in range(frame.state_size) if i not in frame.kept or i in frame.places)


def _unpredicted(sampler: ModelSampler | TableSampler) -> list[int]:
    """The coordinates that samples keep of their start, so that they say nothing."""
    frame = None if isinstance(sampler, TableSampler) else sampler.models[0].frame
    known = () if frame is None else frame.predicted
    return [i for i in range(frame.state_size) if i not in known] if frame and known else []


class _Drawn(NamedTuple):
    """Jumps from some landmarks [K, rows, n, …]."""

    action: Numbers
    end: Numbers
    end_action: Numbers
    ended: Array | np.ndarray


@fast_jit
def _drawn(sampler: Any, horizon: float, states: Array, count: int, key: Key) -> _Drawn:
    policies = tuple(range(len(sampler.bank)))
    shape = len(policies), len(states), count
    act_key, jump_key, end_key = jax.random.split(key, 3)
    x = jnp.broadcast_to(states[None, :, None], (*shape, *states.shape[1:]))
    x = x.reshape(len(policies), -1, *states.shape[1:])
    action = sampler.act(policies, x, key=act_key)
    end = sampler.jump(policies, horizon, x, action, key=jump_key)
    end_action = sampler.act(policies, end, key=end_key)
    ended = jnp.zeros(end.shape[:2], bool)
    if sampler.terminal is not None:
        ended = jax.vmap(jax.vmap(sampler.terminal))(end).astype(bool)
    return _Drawn(*(part.reshape(*shape, *part.shape[2:]) for part in (action, end, end_action, ended)))


def _jumps(
    sampler: ModelSampler | TableSampler,
    horizon: float,
    landmarks: States,
    units: np.ndarray,
    reach: float,
    count: int,
    num_neighbours: int,
    key: Key,
) -> Jumps:
    """The jumps from all landmarks, in calls of bounded memory."""
    tree, whole = KDTree(points_of(landmarks, units)), []
    with progress(len(landmarks), "jumpy graph") as advance:
        for rows, states in _chunks(landmarks, len(sampler.bank) * count, largest_call(sampler)):
            drawn = _drawn(sampler, horizon, states, count, jax.random.fold_in(key, rows.start))
            kept = _Drawn(*(np.asarray(part)[:, : rows.stop - rows.start] for part in drawn))
            if not np.isfinite(kept.end).all():
                raise ArithmeticError(
                    "a model sampled states that are not finite; look at it with ggpi.diagnose"
                )
            where = snapped(points_of(kept.end, units), np.asarray(kept.ended), tree, reach, num_neighbours)
            parts = (*kept, *where)
            whole = whole or [np.empty((len(p), len(landmarks), *p.shape[2:]), p.dtype) for p in parts]
            for array, part in zip(whole, parts, strict=True):
                array[:, rows] = part
            advance(rows.stop, "landmarks")
    return Jumps(*whole)


def _chunks(landmarks: States, jumps: int, largest: int) -> Iterator[tuple[slice, Array]]:
    """Landmarks in chunks of equal length, the last one padded: one compilation."""
    size = min(len(landmarks), max(1, min(AT_ONCE, largest) // jumps))
    for begin in range(0, len(landmarks), size):
        rows = np.minimum(np.arange(begin, begin + size), len(landmarks) - 1)
        yield slice(begin, min(begin + size, len(landmarks))), jnp.asarray(landmarks[rows])
