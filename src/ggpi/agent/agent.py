"""The agent: a state and a reward in, an action out, with nothing learned in between.

For every switching policy ν of a suffix-closed set the agent estimates V^ν(x) by composing samples of models, and
acts with the head of the best one (continuous actions, as in the paper); or it scores first actions by Q^ν(x, a),
all of them when they are discrete, some of the heads' when they are not, and takes the best. The whole set is one
compiled program: samples are shared along common prefixes, models and policies are stacked, and the reward's
parameters are arguments, so that a new target costs no compilation.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from ggpi._jax.forking import check_process
from ggpi._jax.random import checked_key, split
from ggpi.agent.checks import (
    Spaces,
    check_policies,
    checked_closed_loop,
    checked_first_actions,
    checked_spaces,
    checked_states,
    warn_if_slow,
)
from ggpi.agent.choosing import Plan, candidates, choose
from ggpi.agent.searching import Trace, checked_planner, estimates, posed_in, search, searched_set
from ggpi.agent.warnings import Warner
from ggpi.evaluation.queries import AbstractQuery, Estimate, Jump, estimate, largest_call, sampled_levels
from ggpi.evaluation.rewards import SampledReward, checked_reward, sampled_reward
from ggpi.evaluation.stepping import Step, Suffixes
from ggpi.evaluation.tree import Places, Tree, tree_of
from ggpi.ghm.base import GHMs
from ggpi.ghm.samplers import ModelSampler, TableSampler
from ggpi.planning import AbstractPlanner, Exhaustive, JumpyGraph
from ggpi.planning import Plan as Found
from ggpi.planning.chains import Problem
from ggpi.planning.landing import landing
from ggpi.rewards import Each, Reward, as_reward
from ggpi.switching import GSP, GSPs, gsp_set
from ggpi.types import Key, whole


class _Decision(NamedTuple):
    """Values [N, B, C], the best GSP [B] and its action [B, …]; the query and the key of the values."""

    found: Estimate
    best: np.ndarray
    action: np.ndarray
    query: AbstractQuery | None
    key: Key
    search: Found | None = None
    gsps: GSPs | None = None
    """The chosen ones, where there is no set."""


@dataclass(frozen=True, eq=False)
class _Models:
    """What agents for all rewards share."""

    sampler: ModelSampler | TableSampler
    spaces: Spaces
    warner: Warner


@dataclass(frozen=True, eq=False)
class GGPIAgent:
    """Acts greedily over a suffix-closed set of switching policies, for any reward.

    Args:
        ghms: the models, which know their policies, γ and α's.
        reward: what is maximised.
        depth: m of the set Π_m; 1 is GPI; "inf" looks at the state at every switch. Shooting planners have their own.
        graph: the `ggpi.jumpy_graph` of these models, which depth="inf" needs: it knows V where sampled jumps end.
        gsps: any other suffix-closed set, in the place of a depth.
        num_samples: chains for each switching policy, state and first action.
        first_actions: which first actions are scored: "head" none, the head of the best GSP acts; "all" every
            discrete action, by models of what follows it after a geometric time; "step" every discrete action, by a
            model of the next state and by the GSPs' values there; a number so many of each head's actions. The
            default is "all" for the exact models of finite MDPs and "head" for learned models: scoring actions leads
            into states where no base policy was, and so where models were not trained; also for depth="inf".
        terminal: whether a state ends the episode, a JAX function of one state.
        planner: how the set is searched (`ggpi.planning`). By default every GSP gets `num_samples` chains; sets of more
            than 256 are halved with a third of these draws, if the heads act.
        seed: the seed of `predict`.

    Paper: Alg 2, Thm 4.2
    """

    ghms: GHMs
    reward: Reward | ArrayLike | Callable[..., object]
    _: KW_ONLY
    depth: InitVar[int | Literal["inf"] | None] = None
    graph: JumpyGraph | None = None
    gsps: GSPs | Iterable[GSP] | None = None
    num_samples: int = 100
    first_actions: Literal["head", "all", "step"] | int | None = None
    terminal: Callable[[Any], Any] | None = None
    planner: AbstractPlanner | None = None
    seed: int = 0
    _models: _Models | None = field(default=None, repr=False)
    """Of an agent that was made by `with_reward`: the rest has been checked."""
    _calls: Any = field(default_factory=itertools.count, init=False, repr=False)

    def __post_init__(self, depth: int | Literal["inf"] | None):
        check_process()
        if self._models is None:
            self._check(depth)
        spaces = self._shared.spaces
        reward = checked_reward(as_reward(self.reward), spaces.state, spaces.action, spaces.sizes)
        object.__setattr__(self, "reward", reward)
        if self.planner is not None:
            self.planner.check(self._problem)

    @property
    def _shared(self) -> _Models:
        return cast(_Models, self._models)

    @property
    def _set(self) -> GSPs:
        return cast(GSPs, self.gsps)

    def _check(self, depth: int | Literal["inf"] | None) -> None:
        """All but the reward."""
        num_samples = whole(self.num_samples, "num_samples")
        check_policies(self.ghms)
        if depth == "inf" or self.graph is not None:
            others = {"gsps": self.gsps, "planner": self.planner, "first_actions": self.first_actions}
            ghms = checked_closed_loop(depth, self.graph, self.ghms, self.terminal, others)
            object.__setattr__(self, "ghms", ghms)
            depth = 1  # a closed loop is known by its first policy
        if self.gsps is not None:
            object.__setattr__(self, "ghms", self.ghms.supporting(gsp_set(self.gsps).alphas))
        gsps = searched_set(self.planner, self.ghms, depth, self.gsps)
        warn_if_slow(gsps, num_samples)
        sampler = self.ghms.sampler(self.terminal)
        models = _Models(sampler, checked_spaces(self.ghms, sampler, self.graph), Warner(sampler, self.graph))
        default = "head" if self.planner or self.graph else None
        wanted = default if self.first_actions is None else self.first_actions
        first_actions = checked_first_actions(wanted, models.spaces.num_actions, self.ghms)
        planner = checked_planner(self.planner, gsps, num_samples, first_actions)
        for name, value in {
            "gsps": gsps,
            "first_actions": first_actions,
            "planner": None if self.graph or isinstance(planner, Exhaustive) else planner,
            "num_samples": planner.num_samples if isinstance(planner, Exhaustive) else num_samples,
            "_models": models,
        }.items():
            object.__setattr__(self, name, value)

    def act(self, state: ArrayLike, *, key: Key) -> np.ndarray:
        """An action for a state, or one for each of a batch."""
        states, batch = self._checked_states(state)
        action = self._decide(states, checked_key(key)).action
        return action.reshape((*batch, *action.shape[1:]))

    def predict(
        self, observation: ArrayLike, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """An action, and `state` as it was given: what Stable-Baselines3 calls a policy, so that its loops work.

        The agent has no memory and nothing to make deterministic: only `observation` counts. Its noise comes from the
        `seed` that the agent was made with and from the number of calls before this one.
        """
        key = jax.random.fold_in(jax.random.key(self.seed), next(self._calls))
        return self.act(observation, key=key), state

    def plan(
        self,
        state: ArrayLike,
        *,
        seconds: float | None = None,
        trace: Trace | None = None,
        warm: Plan | None = None,
        key: Key,
    ) -> Plan:
        """Every GSP's value with its standard error, the choice, and the samples behind it.

        Args:
            state: one state, or a batch.
            seconds: of an adaptive planner: no round begins after this time.
            trace: called with a `ggpi.agent.Progress` after each round of an adaptive planner.
            warm: the last decision: an adaptive planner starts with what survived longest in it.
            key: the random key.

        Paper: Fig 6
        """
        states, batch = self._checked_states(state)
        limits = {"seconds": seconds, "trace": trace, "warm": None if warm is None else warm.search}
        if self.planner is None and any(limit is not None for limit in (seconds, trace, warm)):
            raise ValueError("seconds, trace and warm are for adaptive planners: give the agent a planner=")
        decided = self._decide(states, checked_key(key), **limits)
        values = [np.moveaxis(np.asarray(part), 1, 0) for part in decided.found]
        starts = (*batch, values[0].shape[2])
        if self.first_actions == "head":
            values, starts = [part[..., 0] for part in values], batch
        value, stderr, best, action = (
            part.reshape((*batch, *part.shape[1:])) for part in (*values, decided.best, decided.action)
        )
        if decided.query is None:
            return Plan(decided.gsps or self._set, value, stderr, best, action, [], [], decided.search)
        levels = sampled_levels(decided.query, self.num_samples, largest=self._largest, key=decided.key)
        levels = [
            [np.reshape(part, (len(part), *starts, *part.shape[2:])) for part in level] for level in levels
        ]
        return Plan(self._set, value, stderr, best, action, levels, self._tree[1])

    def with_reward(self, reward: Reward | ArrayLike) -> GGPIAgent:
        """The same agent for another reward; one of the same kind needs no new compilation."""
        models = dataclasses.replace(self._shared, warner=self._shared.warner.for_other_reward())
        return dataclasses.replace(self, reward=reward, _models=models)

    @cached_property
    def _scored(self) -> SampledReward:
        return sampled_reward(as_reward(self.reward), self._shared.sampler)

    @cached_property
    def _v(self) -> np.ndarray:
        return cast(JumpyGraph, self.graph).solve(self.reward)

    @property
    def _tree(self) -> tuple[Tree, Places]:
        return tree_of(self._set, self.ghms.gamma, self._scored.form)

    @cached_property
    def _heads(self) -> Array:
        return jnp.array([gsp.head for gsp in self._set])

    @cached_property
    def _largest(self) -> int:
        return largest_call(self._shared.sampler)

    @cached_property
    def _problem(self) -> Problem:
        """What a planner solves, in some state."""
        state = jnp.zeros(self._shared.spaces.state.shape, self._shared.spaces.state.dtype)
        models = self.ghms, self._shared.sampler
        return posed_in(self.planner, self._set, *models, as_reward(self.reward), state)

    def _searched(self, states: Array, key: Key, **limits: Any) -> _Decision:
        planner, warm = cast(AbstractPlanner, self.planner), limits.pop("warm", None)
        self._shared.warner.about_codes(planner, self._problem, states, key)
        found = search(planner, self._problem, states, warm, **limits, key=key)
        gsps, values, best = estimates(self._problem, self._set, found)
        return _Decision(values, best, np.asarray(found.action), None, key, found, gsps)

    def _decide(self, states: Array, key: Key, **limits: Any) -> _Decision:
        models = self._shared
        models.warner.about_states(states)
        if self.planner is not None:
            return self._searched(states, key, **limits)
        value_key, first_key, choice_key = split(key, 3)
        query = self._query(states, self._first_actions(states, first_key))
        found = estimate(query, self.num_samples, largest=self._largest, key=value_key)
        models.warner.about_values(np.asarray(found.mean), states, as_reward(self.reward), self.num_samples)
        best, action = choose(models.sampler.bank, self._heads, found.mean, states, query.actions, choice_key)
        return _Decision(found, np.asarray(best), np.asarray(action), query, value_key)

    def _query(self, states: Array, actions: Array | None) -> AbstractQuery:
        if self.graph is not None:
            return landing(self.graph, self._v, self._shared.sampler, self._scored, states, actions)
        parts = self._shared.sampler, self._scored, states, actions, self._tree[0]
        return Jump(*parts) if self.first_actions != "step" else Step(*parts, *self._step)

    @cached_property
    def _step(self) -> tuple[Any, Suffixes]:
        """A Sampler of the next state, and how the GSPs continue after it."""
        return self.ghms.one_step_sampler(), Suffixes(self._set)

    def _first_actions(self, states: Array, key: Key) -> Array | None:
        """First actions to score [K, B, C, …]; None leaves them to the heads, sample by sample."""
        if self.first_actions == "head":
            return None
        if self.first_actions in ("all", "step"):
            num_actions = self._shared.spaces.num_actions
            shape = (len(self.ghms.policies), len(states), num_actions)
            return jnp.broadcast_to(jnp.arange(num_actions, dtype=jnp.int32), shape)
        return candidates(self._shared.sampler.bank, states, cast(int, self.first_actions), key)

    def _checked_states(self, state: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """States [B, …] and the shape of the batch: () for a single state."""
        check_process()
        states, batch = checked_states(state, self._shared.spaces)
        values = self._scored.values
        rewards = jax.tree.leaves(values) if isinstance(values, Each) else ()
        if rewards and batch != (len(rewards[0]),):
            raise ValueError(
                f"there are {len(rewards[0])} rewards, one for each state of a batch; got a batch {list(batch)}"
            )
        return states, batch
