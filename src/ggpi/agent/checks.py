"""Checks of an agent's arguments before it plans: models, policies, a set, first actions, terminals and states.

JAX reads the nearest entry where an index is out of range, and NaN compares false with all: what is wrong has to be
found before numbers are computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ggpi.evaluation.functions import UserError, blamed, guarded, wrong_index
from ggpi.evaluation.rewards import UNTRACEABLE
from ggpi.ghm.base import GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.ghm.samplers import ModelSampler, TableSampler
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.storage.objects import Foreign
from ggpi.switching import GSP, GSPs, compositions, gsp_set, missing_suffixes
from ggpi.types import whole

MOST = 2**17
"""Switching policies of one agent; more take gigabytes and minutes before the first sample is drawn."""
SECONDS_PER_SAMPLE = 4e-6
"""What the ant's models take on two cores."""
SECONDS_PER_LEVEL = 2.0
"""What compiling takes for each level of depth, with two policies and models of `fit`'s default size."""

ROUNDED = 1e-3
"""The share of jumps that may end in a terminal state or not, as another machine rounds."""


@dataclass(frozen=True)
class Spaces:
    """Shapes of a state and of an action."""

    state: jax.ShapeDtypeStruct
    action: jax.ShapeDtypeStruct
    num_actions: int | None
    """The number of discrete actions; None when they are vectors."""
    sizes: tuple[int, ...] | None
    """The numbers of states and of actions of a finite MDP."""


def check_policies(ghms: GHMs) -> None:
    """Raises for policies whose code was not saved with the models."""
    lacking = [policy.name for policy in ghms.policies if isinstance(policy, Foreign)]
    if lacking:
        raise ValueError(
            f"the models were saved without the code of {', '.join(lacking)}; give their policies again: "
            "ggpi.load(path, policies=[…])"
        )


def checked_spaces(
    ghms: GHMs, sampler: ModelSampler | TableSampler, graph: JumpyGraph | None = None
) -> Spaces:
    """The spaces of states and actions, after a try of all parts together."""
    if isinstance(sampler, ModelSampler):
        frame, stacks, sizes = sampler.models[0].frame, sampler.models, None
        state, num_actions = jax.ShapeDtypeStruct((frame.state_size,), jnp.float32), frame.num_actions
    else:
        stacks, sizes = sampler.tables, sampler.pi.shape[1:]
        state, num_actions = jax.ShapeDtypeStruct((), jnp.int32), sizes[1]
    for horizon, stack in zip(sampler.horizons, stacks, strict=True):
        stacked = {len(leaf) for leaf in jax.tree.leaves(eqx.filter(stack, eqx.is_array))}
        if stacked != {len(ghms.policies)}:
            raise ValueError(
                f"{len(ghms.policies)} policies need as many models at horizon {horizon}, got {stacked}"
            )
    if sampler.terminal is not None:
        _check_terminal(sampler.terminal, state)
        _check_graph(graph, sampler.terminal)
    return Spaces(state, _checked_action(ghms, sampler, state), num_actions, sizes)


def _check_terminal(terminal: Callable[[Any], Any], state: jax.ShapeDtypeStruct) -> None:
    called = guarded(terminal, UNTRACEABLE)
    try:
        jaxpr, found = jax.make_jaxpr(called, return_shape=True)(state)
    except UNTRACEABLE as error:
        raise ValueError(
            f"terminal is a JAX function of one state {list(state.shape)}: use jnp, and |, & instead of or, and"
        ) from error
    except UserError as error:
        words, cause = blamed(error.__cause__ or error)
        raise ValueError(f"terminal raised {words} on a state of shape {list(state.shape)}") from cause
    if found.shape != ():
        raise ValueError(
            f"terminal gives one truth value for one state of shape {list(state.shape)}, "
            f"got shape {list(found.shape)}"
        )
    if said := wrong_index(called, jaxpr, (state,)):
        raise ValueError(
            f"terminal has an index that is out of range, where JAX would read the nearest: {said}"
        )


def _check_graph(graph: JumpyGraph | None, terminal: Callable[[Any], Any]) -> None:
    """Raises if the jumps of a graph ended in other states than those that are terminal for the agent."""
    if graph is None:
        return
    end, ended = graph.jumps.end, graph.jumps.ended
    found = jax.vmap(terminal)(jnp.asarray(end.reshape(-1, *end.shape[3:])))
    differ = int((np.asarray(found, bool) != ended.ravel()).sum())
    if differ > ROUNDED * ended.size:
        raise ValueError(
            f"the graph was made with another terminal=: of the ends of its {ended.size:,} jumps, {differ:,} are "
            "terminal for one of graph and agent only. Make the graph again"
        )


def _checked_action(
    ghms: GHMs, sampler: ModelSampler | TableSampler, state: jax.ShapeDtypeStruct
) -> jax.ShapeDtypeStruct:
    """The shape of an action, after a try of every policy with every model, on shapes alone."""
    everyone = tuple(range(len(ghms.policies)))
    shape = jax.ShapeDtypeStruct((len(everyone), 1, *state.shape), state.dtype)
    action, key = shape, jax.random.key(0)
    for horizon in sampler.horizons:
        try:
            action = eqx.filter_eval_shape(sampler.act, everyone, shape, key=key)
            eqx.filter_eval_shape(sampler.jump, everyone, horizon, shape, action, key=key)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"models at horizon {horizon} over states of shape {list(state.shape)} do not go together with the "
                f"policies {', '.join(ghms.names)}, whose actions have shape {list(action.shape[2:])}: {error}"
            ) from error
    return jax.ShapeDtypeStruct(action.shape[2:], action.dtype)


def checked_states(state: ArrayLike, spaces: Spaces) -> tuple[jax.Array, tuple[int, ...]]:
    """States [B, …] and the shape of the batch: () for a single state."""
    array, wanted = np.asarray(state), spaces.state.shape
    batch = array.shape[: array.ndim - len(wanted)]
    if array.ndim < len(wanted) or array.shape[len(batch) :] != wanted or len(batch) > 1:
        shapes = f"a state has shape {list(wanted)}, a batch {['B', *wanted]}"
        raise ValueError(f"{shapes}; got {list(array.shape)}")
    if not array.size:
        raise ValueError(f"there is no state to act in: the batch has shape {list(array.shape)}")
    if spaces.sizes is not None:
        _check_numbers(array, spaces.sizes[0])
    states = jnp.asarray(array.reshape(-1, *wanted), spaces.state.dtype)
    finite = np.isfinite(np.asarray(states)).reshape(array.shape)
    if not finite.all():
        at = tuple(map(int, np.argwhere(~finite)[0]))
        raise ValueError(f"a state is finite numbers, got {array[at]} at index {at}")
    return states, batch


def _check_numbers(states: np.ndarray, num_states: int) -> None:
    """States of a finite MDP are whole numbers in its range."""
    bad = ~((states >= 0) & (states < num_states) & (states % 1 == 0))
    if bad.any():
        raise ValueError(f"states are whole numbers from 0 to {num_states - 1}, got {states[bad].ravel()[0]}")


def checked_set(ghms: GHMs, depth: int | str | None, gsps: GSPs | Iterable[GSP] | None) -> GSPs:
    """All compositions of a depth, or the given set if it is suffix-closed and has its models."""
    if (depth is None) == (gsps is None):
        raise ValueError("give either a depth or a set of switching policies")
    if gsps is None:
        depth = whole(depth, "depth")
        _check_depth(len(ghms.policies), depth)
        return compositions(len(ghms.policies), depth, _alphas_of(ghms, depth))
    chosen = gsp_set(gsps)
    ghms.check(chosen)
    if missing := missing_suffixes(chosen):
        names = ", ".join(gsp.name(ghms.names) for gsp in missing)
        raise ValueError(f"the set is not suffix-closed; it lacks {names} (ggpi.suffix_closure adds them)")
    return chosen


def _check_depth(num_policies: int, depth: int) -> None:
    """Raises before anything is built that would not fit into memory."""
    deepest = next((m - 1 for m in range(1, depth + 1) if num_policies**m > MOST), depth)
    if depth > deepest:
        raise ValueError(
            f"depth {depth} over {num_policies} policies makes {num_policies}^{depth} switching policies, an agent "
            f"takes at most {MOST:,}: use a depth of at most {deepest}, fewer policies, or a set of your own with gsps="
        )


def checked_closed_loop(
    depth: object,
    graph: object,
    ghms: GHMs,
    terminal: Callable[[Any], Any] | None,
    others: Mapping[str, object],
) -> GHMs:
    """The models with the graph's α, if the graph is theirs; `others` are arguments that an infinite depth excludes."""
    if depth != "inf" or graph is None:
        raise ValueError(
            "the closed loop needs both depth='inf' and graph=ggpi.jumpy_graph(ghms, data, key=…), got "
            f"depth={depth!r} and {'no graph' if graph is None else 'a graph'}; finite MDPs also have "
            "ggpi.evaluate_closed_loop"
        )
    if not isinstance(graph, JumpyGraph):
        raise TypeError(f"graph is what ggpi.jumpy_graph returns, got {type(graph).__name__}")
    for name, value in others.items():
        if value is not None and (name != "first_actions" or value == "step"):
            raise ValueError(f"depth='inf' scores one jump of every policy; leave out {name}={value!r}")
    ghms = ghms.supporting([graph.alpha]) if ghms.gamma == graph.gamma else ghms
    graph.check_models(ghms)
    if graph.has_terminals != (ghms.sampler(terminal).terminal is not None):
        knows, lacks = ("graph", "agent") if graph.has_terminals else ("agent", "graph")
        raise ValueError(
            f"the {knows} knows terminal states, the {lacks} does not: give terminal= to both or none"
        )
    return ghms


def warn_if_slow(gsps: GSPs, num_samples: int) -> None:
    """Warns if an action or its compilation takes long."""
    seconds, compiling = len(gsps) * num_samples * SECONDS_PER_SAMPLE, gsps.depth * SECONDS_PER_LEVEL
    if seconds > 4 or compiling > 15:
        warnings.warn(
            f"depth {gsps.depth}, {len(gsps):,} switching policies with {num_samples} samples each: on two cores an "
            f"action takes roughly {seconds:.2g} s, and the first one at least {compiling:.0f} s more, to compile. A "
            "smaller depth or fewer samples cost less",
            stacklevel=3,
        )


def _alphas_of(ghms: GHMs, depth: int) -> tuple[float, ...]:
    """The α of each of depth − 1 switches."""
    alphas = ghms.alphas * (depth - 1) if len(ghms.alphas) == 1 or depth == 1 else ghms.alphas
    if len(alphas) != depth - 1:
        raise ValueError(
            f"depth {depth} needs models of one α, or of one for each of its {depth - 1} switches; these are of "
            f"{list(alphas)}. Learn models with other α's, give gsps= instead, or choose an α of models for any of "
            "them: ghms.with_alpha(α)"
        )
    return alphas


def checked_first_actions(
    chosen: Literal["head", "all", "step"] | int | None, num_actions: int | None, ghms: GHMs
) -> Literal["head", "all", "step"] | int:
    """Which first actions are scored: "head", "all", "step", or how many of each head's."""
    is_exact = isinstance(ghms.segment(0, None), ExactGHM)
    if chosen is None:
        return "all" if is_exact else "head"
    if chosen in ("all", "step") and num_actions is None:
        raise ValueError("continuous actions cannot all be scored; give 'head' or how many to score")
    if chosen == "step" and not is_exact and ghms.one_step is None:
        raise ValueError(
            "first_actions='step' needs a model of the next state, which these models lack; ggpi.fit learns one when "
            "actions are discrete. Fit again, or give 'head'"
        )
    if chosen not in ("head", "all", "step") and (not isinstance(chosen, int) or chosen < 1):
        raise ValueError(f"first_actions is 'head', 'all', 'step' or a number of at least 1, got {chosen!r}")
    return chosen
