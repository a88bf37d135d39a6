"""Learned GHMs of finite MDPs: softmax logits φ(x, a), trained by CEMC or CETD.

    CEMC:  φ ← φ + ε (e_{X_T} − μ),                     X_T ∼ μ^π_γ(·|x, a)
    CETD:  φ ← φ + ε ((1−γ) e_{x′} + γ e_{x″} − μ),     x′ ∼ P(·|x, a), a′ ∼ π(·|x′), x″ ∼ μ(·|x′, a′)

Both are stochastic gradients of a cross-entropy; CETD bootstraps from the current model, and converges to
μ^π_γ when Σ ε = ∞ and Σ ε² < ∞. Synchronous updates treat every pair at every step; replay updates treat
the pairs of a minibatch of recorded transitions.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num
from numpy.typing import ArrayLike

from ggpi._jax.alias import alias_table
from ggpi._jax.shapes import Lead
from ggpi.data import Transitions
from ggpi.ghm.exact import ExactGHM
from ggpi.mdp.tabular import TabularMDP, check_gamma
from ggpi.policies import TabularPolicy
from ggpi.types import Key, Scalar

Logits = Float[Array, "*k S A S"]
Step = int | Num[Array, ""]
Schedule = Callable[[Step], float | Array]
"""k ↦ ε_k, the step size of step k = 0, 1, …"""


class TabularGHM(eqx.Module):
    """μ(·|x, a) = softmax(φ(x, a)); logits [..., S, A, S], leading axes for recorded or parallel models."""

    logits: Float[Array, "... S A S"]

    @property
    def mu(self) -> Float[Array, "... S A S"]:
        return jax.nn.softmax(self.logits, axis=-1)

    def check_parts(self, lead: Lead) -> None:
        """Logits [..., S, A, S]."""
        shape = self.logits.shape
        if len(shape) < 3 or shape[-1] != shape[-3] or 0 in shape or shape[: len(lead)] != lead:
            raise ValueError(f"logits have shape {shape}, expected [..., S, A, S]")

    def sample(self, state: ArrayLike, action: ArrayLike, *, key: Key) -> Int[Array, "*b"]:
        """The state after a geometric time, for one pair or for arrays of them."""
        return _pick(self.mu[jnp.asarray(state), jnp.asarray(action)], key)


def polynomial_steps(scale: float = 0.75, power: float = 0.6) -> Schedule:
    """ε_k = scale · (k + 1)^−power; the conditions of Theorem 6.3 hold for ½ < power ≤ 1."""
    return lambda k: scale * (k + 1.0) ** -power


PAPER_STEPS = polynomial_steps()


def cetd(
    mdp: TabularMDP,
    policy: ArrayLike,
    gamma: Scalar,
    *,
    num_steps: int,
    step_size: Schedule = PAPER_STEPS,
    logits: ArrayLike | None = None,
    record_every: int | None = None,
    key: Key,
) -> TabularGHM:
    """Synchronous CETD: every pair gets its own transition at every step.

    Returns the model after `num_steps`, or, with `record_every`, the models after each so many steps.

    Args:
        mdp: the dynamics.
        policy: the evaluated policy, an array π [S, A] or a `TabularPolicy`.
        gamma: the horizon of the model.
        num_steps: updates of every pair.
        step_size: ε_k of step k.
        logits: where to start [S, A, S]; uniform by default.
        record_every: steps between the models that are returned, stacked.
        key: the source of all samples.

    Paper: Eq 8, Eq 9, Eq 11, Eq 12, Thm 6.3
    """
    gamma = check_gamma(gamma)
    arrive = alias_table(_dense_rows(mdp))
    choose = alias_table(mdp.checked_policy(policy))
    pairs = jnp.arange(mdp.num_states * mdp.num_actions).reshape(mdp.num_states, mdp.num_actions)

    def target(mu: Logits, key: Key) -> Logits:
        world_key, action_key, model_key = jax.random.split(key, 3)
        following = arrive.sample(pairs, key=world_key)
        sampled = _pick(mu[following, choose.sample(following, key=action_key)], model_key)
        return (1 - gamma) * _one_hot(following, mdp) + gamma * _one_hot(sampled, mdp)

    return _learn(
        target, _start(logits, mdp.num_states, mdp.num_actions), num_steps, step_size, record_every, key
    )


def cemc(
    mdp: TabularMDP,
    policy: ArrayLike,
    gamma: Scalar,
    *,
    num_steps: int,
    step_size: Schedule = PAPER_STEPS,
    logits: ArrayLike | None = None,
    record_every: int | None = None,
    key: Key,
) -> TabularGHM:
    """Synchronous CEMC: every pair gets its own true sample of the future at every step.

    The arguments are those of `cetd`.

    Paper: Eq 7
    """
    truth = ExactGHM(mdp, TabularPolicy(np.asarray(policy)), check_gamma(gamma)).sampler
    state, action = jnp.indices((mdp.num_states, mdp.num_actions))

    def target(mu: Logits, key: Key) -> Logits:
        return _one_hot(truth.sample(state, action, key=key), mdp)

    return _learn(
        target, _start(logits, mdp.num_states, mdp.num_actions), num_steps, step_size, record_every, key
    )


def cetd_replay(
    transitions: Transitions,
    policy: ArrayLike,
    gamma: Scalar,
    *,
    num_steps: int,
    batch_size: int = 32,
    step_size: Schedule = PAPER_STEPS,
    logits: ArrayLike | None = None,
    key: Key,
) -> TabularGHM:
    """CETD on minibatches drawn from recorded transitions of any behaviour; only their pairs are updated.

    After a terminated transition the future is the terminal state forever, so x″ = x′.

    Args:
        transitions: integer states and actions.
        policy: the evaluated policy, an array π [S, A] or a `TabularPolicy`.
        gamma: the horizon of the model.
        num_steps: updates, each of one minibatch.
        batch_size: transitions of a minibatch.
        step_size: ε_k of step k.
        logits: where to start [S, A, S]; uniform by default.
        key: the source of minibatches and samples.
    """
    gamma = check_gamma(gamma)
    pi = TabularPolicy(np.asarray(policy))
    num_states, num_actions = pi.pi.shape
    x, a, following = (jnp.asarray(part, jnp.int32) for part in _checked_pairs(transitions, pi))
    terminated = jnp.asarray(transitions.terminated, bool)
    choose = pi.table

    def update(logits: Logits, size: float | Array, key: Key) -> Logits:
        row_key, action_key, model_key = jax.random.split(key, 3)
        rows = jax.random.randint(row_key, (batch_size,), 0, len(x))
        arrived = following[rows]
        mu = jax.nn.softmax(logits, axis=-1)
        sampled = _pick(mu[arrived, choose.sample(arrived, key=action_key)], model_key)
        sampled = jnp.where(terminated[rows], arrived, sampled)
        target = (1 - gamma) * jax.nn.one_hot(arrived, num_states) + gamma * jax.nn.one_hot(
            sampled, num_states
        )
        return logits.at[x[rows], a[rows]].add(size * (target - mu[x[rows], a[rows]]))

    return _scan(update, _start(logits, num_states, num_actions), num_steps, step_size, None, key)


def _learn(
    target: Callable[[Logits, Key], Logits],
    logits: Logits,
    num_steps: int,
    step_size: Schedule,
    record_every: int | None,
    key: Key,
) -> TabularGHM:
    """φ ← φ + ε (target(μ) − μ) forevery pair."""

    def update(logits: Logits, size: float | Array, key: Key) -> Logits:
        mu = jax.nn.softmax(logits, axis=-1)
        return logits + size * (target(mu, key) - mu)

    return _scan(update, logits, num_steps, step_size, record_every, key)


def _scan(
    update: Callable[[Logits, float | Array, Key], Logits],
    logits: Logits,
    num_steps: int,
    step_size: Schedule,
    record_every: int | None,
    key: Key,
) -> TabularGHM:
    """`num_steps` updates as one compiled scan; logits are kept after every `record_every`."""
    every = record_every or num_steps
    if num_steps < 1 or num_steps % every:
        raise ValueError(f"num_steps ({num_steps}) is a positive multiple of record_every ({every})")

    def step(logits: Logits, k: Step) -> tuple[Logits, None]:
        return update(logits, step_size(k), jax.random.fold_in(key, k)), None

    def stretch(logits: Logits, first: Step) -> tuple[Logits, Logits]:
        logits, _ = jax.lax.scan(step, logits, first + jnp.arange(every))
        return logits, logits

    _, path = jax.jit(lambda start: jax.lax.scan(stretch, start, jnp.arange(0, num_steps, every)))(logits)
    return TabularGHM(path if record_every else path[-1])


def _start(logits: ArrayLike | None, num_states: int, num_actions: int) -> Logits:
    shape = (num_states, num_actions, num_states)
    start = jnp.zeros(shape) if logits is None else jnp.asarray(logits, jnp.float32)
    if start.shape != shape:
        raise ValueError(f"logits have shape [S, A, S] = {shape}, got {start.shape}")
    return start


def _pick(probabilities: Float[Array, "*b n"], key: Key) -> Int[Array, "*b"]:
    """One index from each row of probabilities [..., n]."""
    u = jax.random.uniform(key, probabilities.shape[:-1])
    passed = (jnp.cumsum(probabilities, axis=-1) <= u[..., None]).sum(axis=-1)
    return jnp.minimum(passed, probabilities.shape[-1] - 1)


def _one_hot(states: Int[Array, "*b"], mdp: TabularMDP) -> Float[Array, "*b S"]:
    return jax.nn.one_hot(states, mdp.num_states)


def _dense_rows(mdp: TabularMDP) -> np.ndarray:
    return mdp.kernel if isinstance(mdp.kernel, np.ndarray) else mdp.kernel.toarray()


def _checked_pairs(transitions: Transitions, pi: TabularPolicy) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = transitions.state, transitions.action, transitions.next_state
    for name, part, limit in zip(("state", "action", "next_state"), parts, pi.pi.shape * 2, strict=False):
        if not len(part) or part.min() < 0 or part.max() >= limit:
            raise ValueError(f"{name}: integers from 0 to {limit - 1} are expected, at least one of them")
    return parts
