"""The small MDPs of the paper's examples, each as (mdp, reward).

The figures that draw them are missing from the source; what the text says of them is kept, and what
it leaves open is chosen here and stated in the docstring.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ggpi.mdp.tabular import TabularMDP
from ggpi.rewards import Reward, state_action

CETD_LOGITS = np.array(
    [
        [-2.3634686, 1.13534535, -1.01701414],
        [0.63736181, -0.85990661, 1.77260763],
        [-1.11036305, 0.18121427, 0.56434487],
    ]
)
"""φ₀ of both three-state examples."""

CETD_RECURRENT = np.array(
    [
        [0.297492728, 0.702444212, 0.000063060],
        [0.584810131, 0.257810252, 0.157379617],
        [0.181511854, 0.373368720, 0.445119427],
    ]
)
CETD_TRANSIENT = np.array(
    [
        [0.765830909, 0.234148071, 0.000021020],
        [0.0, 0.620945430, 0.379054570],
        [0.0, 0.456168756, 0.543831244],
    ]
)


def three_states(transient: bool = False) -> TabularMDP:
    """Three states, one action; with `transient` the first state is left for ever and μ has zeros.

    Paper: Fig 8, Fig 9
    """
    return TabularMDP((CETD_TRANSIENT if transient else CETD_RECURRENT)[:, None, :])


def left_right() -> tuple[TabularMDP, Reward]:
    """Left, right and an end: in left, a stays and b goes right; in right, a stays for 1 and b ends.

    All other rewards are 0. The text fixes b in left and both actions in right; a in left is our choice.

    Paper: Ex D.1, Fig 10
    """
    P = np.zeros((3, 2, 3))
    P[0, 0, 0] = P[0, 1, 1] = P[1, 0, 1] = P[1, 1, 2] = 1
    P[2, :, 2] = 1
    return TabularMDP(P, [False, False, True], ["L", "R", "end"]), state_action([[0, 0], [1, 0], [0, 0]])


def one_state() -> tuple[TabularMDP, Reward]:
    """One state; action a pays 1 and b pays 0.

    Paper: Ex D.2, Fig 11
    """
    return TabularMDP(np.ones((1, 2, 1))), state_action([[1, 0]])


def binary_tree() -> tuple[TabularMDP, Reward]:
    """A tree of depth 3, actions L and R; the last action pays its leaf's reward and ends.

    The text fixes the leaves LLR = +1, RLR = +2, RLL = −1 and RRL = 0; the other four are 0 here.
    States are labelled by the actions that lead to them: "" is x₀ and "R" is x₁.

    Paper: Ex D.3, Fig 12
    """
    labels = ["", "L", "R", "LL", "LR", "RL", "RR", "end"]
    leaves = {"LLR": 1.0, "RLR": 2.0, "RLL": -1.0}
    P, r = np.zeros((8, 2, 8)), np.zeros((8, 2))
    P[7, :, 7] = 1
    for x, label in enumerate(labels[:-1]):
        for a, action in enumerate("LR"):
            following = label + action
            P[x, a, labels.index(following) if len(following) < 3 else 7] = 1
            r[x, a] = leaves.get(following, 0.0)
    return TabularMDP(P, np.arange(8) == 7, labels), state_action(r)


def chain(length: int, end_reward: float) -> tuple[TabularMDP, Reward]:
    """x₀ … x_k and an end. Right moves on, and ends from x_k for `end_reward`; up ends at once for 1.

    Paper: Ex D.4, Fig 13
    """
    if length < 1:
        raise ValueError(f"a chain has k ≥ 1 moves, got {length}")
    end = length + 1
    P, r = np.zeros((length + 2, 2, length + 2)), np.zeros((length + 2, 2))
    P[np.arange(length + 1), 0, np.arange(1, length + 2)] = 1
    P[: length + 1, 1, end] = P[end, :, end] = 1
    r[: length + 1, 1] = 1.0
    r[length, 0] = end_reward
    labels = [f"x{i}" for i in range(length + 1)] + ["end"]
    return TabularMDP(P, np.arange(length + 2) == end, labels), state_action(r)


def chain_reward_bound(length: int, gamma: float, alpha: float) -> float:
    """The end reward above which 𝒢({π₀ → π₁, π₁}) is optimal on the whole chain, and below which it is not.

    π₀ goes right but for x_k, π₁ = 𝒢(π₀) goes up but for x_k. From x₀, right and then π₀ → π₁ pays γʲ when
    the switch comes at xⱼ, j < k; else it reaches x_k and takes the end reward R if it switches there, 1 if
    not. For k ≥ 2 this must beat up's 1, and then it does so from every later state too:
        Σ_{j=1}^{k−1} γα β^{j−1} + γ β^{k−1} (α R + 1 − α) > 1.
    For k = 1 π₁ alone is enough, with γR > 1. No R is large enough for k ≥ 2 when α = 1.

    Paper: Ex D.4
    """
    beta = gamma * (1 - alpha)
    if length == 1:
        return 1 / gamma if gamma > 0 else np.inf
    on_the_way = gamma * alpha * np.sum(beta ** np.arange(length - 1))
    reach = gamma * beta ** (length - 1)
    return float(((1 - on_the_way) / reach - (1 - alpha)) / alpha) if reach > 0 else np.inf


def deeper_is_worse() -> tuple[TabularMDP, Reward, list[np.ndarray]]:
    """Two states, three actions, two policies for which depth 2 ends below depth 1 at γ = 0.8, α = 0.5.

            action 0            action 1            action 2
        x₀  stays for 0  (π₀)   to x₁ for 3  (π₁)   stays for 2
        x₁  stays for 3         stays for −1 (π₁)   to x₀ for −1 (π₀)

    Neither policy knows that x₁ pays 3 for ever: to them it is worth −1 and −5. Depth 1 goes there all the
    same, for the 3 on the way: 3 − 0.8 beats 2 + 0.8 · 0. Once there it finds action 0 and gets 3 for ever,
    15 in all. Depth 2 adds π₁ → π₀, "take the 3 and come back", which makes x₀ worth 5/3 to a policy that is
    there, but x₁ no more than before. So 2 + 0.8 · 5/6 for staying beats 2.2: it stays for ever and gets 10.

    Each policy keeps its promise, Q^{π′} ≥ max_ν Q^ν; a larger promise need not give a better policy.
    Returns (mdp, reward, [π₀, π₁]).
    """
    P = np.eye(2)[np.array([[0, 1, 0], [1, 1, 0]])]
    policies = [np.eye(3)[[0, 2]], np.eye(3)[[1, 1]]]
    return TabularMDP(P, labels=["x0", "x1"]), state_action([[0, 3, 2], [3, -1, -1]]), policies


def more_is_worse() -> tuple[TabularMDP, Reward, list[np.ndarray]]:
    """Two states, three actions, two policies: improvement over both ends below improvement over the first, at γ = 0.8.

            action 0                 action 1          action 2
        x₀  stays for −2 (π₀, π₁)    stays for 0       stays for 3
        x₁  stays for 0  (π₁)        to x₀ for 2       to x₀ for 0 (π₀)

    Both policies have V(x₀) = −10. π₀ alone has V(x₁) = −8, so going for 2 beats staying, −6 against −6.4; in x₀ the
    improved policy finds action 2 and gets 3 for ever. π₁ adds V(x₁) = 0. So the improved policy stays in x₁ and gets
    0, in the place of 14.

    Q̄ rises with the set, for the closed loop and for every depth, and is a lower bound of Q^{π′}; but Q^{π′} itself may
    fall. Returns (mdp, reward, [π₀, π₁]).
    """
    P = np.eye(2)[np.array([[0, 0, 0], [1, 0, 0]])]
    policies = [np.eye(3)[[0, 2]], np.eye(3)[[0, 0]]]
    return TabularMDP(P, labels=["x0", "x1"]), state_action([[-2, 0, 3], [0, 2, 0]]), policies


def with_memory(mdp: TabularMDP, num_memories: int, update: Callable[[int, int, int], int]) -> TabularMDP:
    """The MDP on pairs (state, memory), memory′ = update(memory, state, action); pair x·M + m.

    A policy with finite memory is a Markov policy of this MDP. At a terminal state memory stays as it is.
    """
    S, A, M = mdp.num_states, mdp.num_actions, num_memories
    P = np.zeros((S, M, A, S, M))
    for x in range(S):
        for memory in range(M):
            for a in range(A):
                kept = memory if mdp.terminal[x] else update(memory, x, a)
                P[x, memory, a, :, kept] = mdp.P[x, a]
    labels = [(label, memory) for label in mdp.labels for memory in range(M)]
    return TabularMDP(P.reshape(S * M, A, S * M), np.repeat(mdp.terminal, M), labels)
