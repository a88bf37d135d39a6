"""Where training targets come from: recorded futures, bootstrapped where the recording ends.

Draw T ∼ Geometric(1−β). From row t, follow the recorded states while the acting policy is the evaluated one,
at most n of them. If T is reached, the target is that state. If not, the rest of T is geometric again, so the
target is a sample of the current model from there:

    target = X_{t+T}                                      if T ≤ L,      L = steps that can be followed
             x″ ∼ μ̄(·|x′, a′), a′ ∼ π(·|x′), x′ = X_{t+L}  if T > L

This is a sample of (T^π_β)^L μ̄; n = 1 is the paper's CETD, and L = ∞ its CEMC. The first action may be any:
μ(·|x, a) is conditioned on it. When an episode *terminates*, the future stays at x′ and so does the target; when it
is *truncated*, the future continues and the model is sampled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Num
from scipy.spatial import KDTree

from ggpi._jax.devices import over_devices
from ggpi.data import Transitions
from ggpi.types import Key

FRESH = 4
"""The first rows of a policy's turn: states in which another policy was acting before."""
FAR_STEPS, NEAR = 3, 16
"""Steps over which it is seen how far rows lead, and rows near by over which that is averaged."""
TAIL = 1e-3
"""CEMC leaves out starts from which more than this mass of T lies beyond the recording."""


class Dataset(eqx.Module):
    """Transitions on the device, with how far each of K policies may follow them."""

    state: Float[Array, "N D"]
    action: Num[Array, "N *A"]
    next_state: Float[Array, "N D"]
    terminated: Bool[Array, "N"]
    length: Int[Array, "K N"]
    """L, the number of recorded steps that policy k may follow from a row: at least the row's own."""
    starts: Int[Array, "K n"]
    """Rows where training of policy k may start, padded by repeating them."""
    num_starts: Int[Array, "K"]


def n_step_dataset(data: Transitions, num_policies: int, n_step: int, far: Sequence[int] = ()) -> Dataset:
    """What `num_policies` policies may learn from transitions by following at most `n_step` of them.

    Every row is a start. With n_step > 1, rows from which more can be followed are drawn more often: a quarter of
    the draws are rows of the policy's own, and half are among the first rows of its turns, because composed models
    are sampled where another policy was acting. A policy that was alone in its episodes has no turns: half of the
    draws are rows of its own. (To choose rows by how far they can be followed would be wrong: those that end are
    among the short ones.)

    Args:
        data: the transitions.
        num_policies: how many policies are evaluated.
        n_step: the most steps that are followed.
        far: places, if rows of `far_rows` are to be drawn as often as all others are by themselves.
    """
    lengths = np.stack([np.minimum(followed_steps(data, k), n_step) for k in range(num_policies)])
    more = far_rows(data, far) if far else np.arange(0)
    return _on_device(data, lengths, [np.append(_starts(data, k, n_step), more) for k in range(num_policies)])


def far_rows(data: Transitions, places: Sequence[int]) -> Integer[np.ndarray, "N"]:
    """As many rows as there are, in proportion to how far the record leads from near them: its mean squared distance.

    Where a world moves a body elsewhere, and not where it only walks, a model needs most of its rows. They are chosen
    by where they begin: to choose them by where they lead would change the distribution that is learned.

    Args:
        data: the transitions.
        places: coordinates of the state that distances are measured in.
    """
    last = np.arange(len(data))
    for _ in range(FAR_STEPS - 1):
        last = np.where(data.is_followed[last], last + 1, last)
    begin, end = data.state[:, list(places)], data.next_state[last][:, list(places)]
    squares = ((end - begin) ** 2).sum(axis=1, dtype=float)
    _, near = KDTree(begin).query(begin, k=min(NEAR + 1, len(data)), workers=-1)
    sums = np.cumsum(squares[np.reshape(near, (len(data), -1))[:, 1:]].mean(axis=1))  # without its own
    points = (np.arange(len(data)) + 0.5) / len(data) * sums[-1]
    return np.minimum(np.searchsorted(sums, points, side="right"), len(data) - 1)


def _starts(data: Transitions, policy: int, n_step: int) -> Integer[np.ndarray, "n"]:
    """Rows to start from, each as often as it is to be drawn."""
    every, own = np.arange(len(data)), np.flatnonzero(data.behaviour == policy)
    if n_step == 1 or not 0 < len(own) < len(data):
        return every
    begins = data.episode_starts
    turns = np.append(False, np.diff(data.behaviour) != 0) & ~begins
    if not turns[own].any():
        return np.concatenate([every, np.resize(own, len(every))])
    age = every - np.maximum.accumulate(np.where(begins | turns, every, 0))
    fresh = own[age[own] < FRESH]
    return np.concatenate([every, np.resize(own, len(every)), np.resize(fresh, 2 * len(every))])


def needed_steps(betas: Sequence[float]) -> int:
    """Recorded steps beyond which less than a thousandth of T lies, for every β."""
    return max((math.ceil(math.log(TAIL) / math.log(beta)) for beta in betas if beta > 0), default=1)


def trajectory_dataset(data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
    """Rows of each policy from which the recorded future is long enough for CEMC at every β.

    From such a row a terminated episode stays at its end; in a truncated one less than a thousandth of T lies
    beyond the recording, and T is capped there. Other rows are left out, so episodes should be long compared with
    1/(1−β). The first action may be any: its row counts as one of the policy that acts afterwards.
    """
    needed = needed_steps(betas)
    lengths = np.stack([followed_steps(data, k) for k in range(num_policies)])
    ends = np.arange(len(data)) + lengths - 1
    starts = []
    for k in range(num_policies):
        longest = int(lengths[k].max())
        long = (lengths[k] >= needed) | np.asarray(data.terminated, bool)[ends[k]]
        rows = np.flatnonzero(long & (data.behaviour == k))
        if not len(rows):
            raise ValueError(
                f"CEMC needs trajectories of policy {k} of at least {needed} steps (β = {max(betas):g}), or ones "
                f"that terminate; the longest here has {longest}"
                f"{'' if longest > 1 else f' ({why_loose(data)})'}. CETD learns from any transitions"
            )
        starts.append(rows)
    return _on_device(data, lengths, starts)


def warn_if_loose(data: Transitions, num_policies: int, n_step: int) -> None:
    """Warns when no trajectory can be followed and n-step CETD reduces to one-step.

    A policy follows only rows in which it is known to have acted: neither loose transitions nor unknown behaviours.
    """
    if n_step > 1 and all((followed_steps(data, k) == 1).all() for k in range(num_policies)):
        warnings.warn(
            f"n_step is {n_step}, but there is nothing to follow: {why_loose(data)}. "
            "This is one-step CETD, which learns from any transitions; CETD(n_step=1) says so",
            stacklevel=3,
        )


def why_loose(data: Transitions) -> str:
    """Why no trajectory can be followed, in words."""
    if not data.is_followed.any():
        return "the transitions are loose, no row is the next step of the row before it"
    known = sorted(set(np.unique(data.behaviour).tolist()) - {-1})
    return f"rows are of policies {known}" if known else "the behaviour policy is unknown, behaviour is −1"


def followed_steps(data: Transitions, policy: int) -> Integer[np.ndarray, "N"]:
    """L for every row: its own step, and the steps after it that were taken by `policy` in the same episode."""
    follows = data.is_followed & np.append(data.behaviour[1:] == policy, False)
    rows = np.arange(len(follows))
    stops = np.minimum.accumulate(np.where(follows, len(rows), rows)[::-1])[::-1]
    return 1 + stops - rows


def draw_rows(dataset: Dataset, num_horizons: int, batch_size: int, *, key: Key) -> Int[Array, "M B"]:
    """Rows to train on, for the models of K policies × `num_horizons`, horizon by horizon; divided over devices."""
    num = jnp.tile(dataset.num_starts, num_horizons)[:, None]
    u = jax.random.uniform(key, (len(num), batch_size))
    places = jnp.minimum((u * num).astype(jnp.int32), num - 1)
    policy = jnp.tile(jnp.arange(len(dataset.num_starts)), num_horizons)[:, None]
    return over_devices(dataset.starts[policy, places])


def follow(
    dataset: Dataset, rows: Int[Array, "M B"], betas: Float[Array, "M"], *, key: Key
) -> tuple[Float[Array, "M B D"], Bool[Array, "M B"]]:
    """The last recorded state that was followed, and whether T lies beyond it."""
    num_policies = len(dataset.num_starts)
    policy = (jnp.arange(len(betas)) % num_policies)[:, None]
    time = geometric(betas[:, None], rows.shape, key=key)
    length = dataset.length[policy, rows]
    last = rows + jnp.minimum(time, length) - 1
    beyond = (time > length) & ~dataset.terminated[last]
    return dataset.next_state[last], beyond


def geometric(beta: Float[Array, "..."], shape: tuple[int, ...], *, key: Key) -> Int[Array, "..."]:
    """T ∼ Geometric(1−β) on 1, 2, …, by inversion; 1 for β = 0."""
    u = jax.random.uniform(key, shape, minval=jnp.finfo(jnp.float32).tiny)
    steps = jnp.floor(jnp.log(u) / jnp.log(jnp.maximum(beta, 1e-30)))
    return 1 + jnp.minimum(steps, 2.0**20).astype(jnp.int32)


def _on_device(
    data: Transitions, lengths: Integer[np.ndarray, "K N"], starts: Sequence[Integer[np.ndarray, "_"]]
) -> Dataset:
    size = max(map(len, starts))
    discrete = np.issubdtype(data.action.dtype, np.integer)
    return Dataset(
        jnp.asarray(data.state, jnp.float32),
        jnp.asarray(data.action, jnp.int32 if discrete else jnp.float32),
        jnp.asarray(data.next_state, jnp.float32),
        jnp.asarray(data.terminated, bool),
        jnp.asarray(np.minimum(lengths, 2**30), jnp.int32),
        jnp.asarray(np.stack([np.resize(rows, size) for rows in starts]), jnp.int32),
        jnp.asarray([len(rows) for rows in starts], jnp.int32),
    )
