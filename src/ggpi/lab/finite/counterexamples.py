"""Three small MDPs that show why GGPI asks for what it asks for.

The figures of these MDPs are missing from the paper's source; what its text leaves open is chosen here.

D.1, left and right. In L, a stays and b goes to R, both for 0; in R, a stays for 1 and b ends for 0. The
    policy with memory plays bb from L and aab from R: Q(L,·) = 0, Q(R,a) = 1 + γ, Q(R,b) = 0. A Markov
    policy has Q(L,b) = u and Q(R,a) = 1 + u with one and the same u = γV(R) ≥ 0, so it is wrong by
    max(u, |u − γ|) ≥ γ/2: none has this Q. The least error γ/2 is reached by π(a|R) = 1/(2+γ).
D.2, one state. The reward of a is 1, that of b is 0; the policy plays abbb… or baaa…, each with
    probability ½. Then Q(a) = 1 and Q(b) = γ/(1−γ), so for γ > ½ greedy plays b for ever and gets 0, below
    the policy's 1/(2(1−γ)).
D.3, a binary tree of depth 3. The last action gets the reward of its leaf: LLR +1, RLR +2, RLL −1, all others 0. The
    switching policy ν = L →(1) L →(1) R plays LLR. Its Q is +1, +2 at x₀, and −1, 0 at x₁, reached by R
    (each over its power of γ); greedy plays R, R and gets 0, below ν's +1. With the suffixes L →(1) R
    and R in the set, π′ plays RLR and gets +2.

D.1 and D.2 are computed as Markov policies of the MDP on pairs (state, memory).
"""

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np

from ggpi import envs
from ggpi.evaluation import evaluate
from ggpi.ghm import exact_ghms
from ggpi.improvement import OpenSetWarning, improve
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.policies import TabularPolicy
from ggpi.switching import GSP, gsp_set, suffix_closure


@dataclass(frozen=True)
class Config:
    gamma: float = 0.9
    """Discount γ of D.1 and D.3, and of D.2's row in the table."""
    gammas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.45, 0.55, 0.6, 0.7, 0.8, 0.9)
    """Discounts at which D.2 is computed for the figure."""
    resolution: int = 201
    """Values of π(a|R) that are tried in D.1, each with 11 values of π(b|L)."""
    seed: int = 0
    """Changes nothing: all of this is exact."""


PRESETS = {"tiny": Config(resolution=41), "cpu": Config(), "paper": Config()}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """The three counterexamples.

    Paper: Ex D.1, Ex D.2, Ex D.3, Fig 10, Fig 11, Fig 12
    """
    tasks = {
        "D.1": partial(non_markov_q, config.gamma, config.resolution),
        "D.2": partial(greedy_on_memory, config.gamma),
        "D.3": partial(greedy_on_open_set, config.gamma),
    }
    sweep = {f"D.2-sweep/gamma-{gamma:g}": partial(greedy_on_memory, gamma) for gamma in config.gammas}
    results = cells({**tasks, **sweep})
    return {
        "gamma": config.gamma,
        **{name: results[name] for name in tasks},
        "D.2 sweep": [results[name] for name in sweep],
    }


def non_markov_q(gamma: float, resolution: int) -> Metrics:
    """Q of the policy with memory, and the nearest Q of a Markov policy in the sup norm.

    Memory: 0 fresh, 1 started in L, 2 and 3 one and two steps after a start in R.
    """
    mdp, reward = envs.left_right()
    update = np.array([[1, 2, 1], [1, 1, 1], [3, 3, 3], [3, 3, 3]])  # memory × state
    plan = np.array([[1, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1]])
    augmented = envs.with_memory(mdp, 4, lambda memory, x, a: int(update[memory, x]))
    policy = TabularPolicy.deterministic(plan.T.ravel(), 2)
    q = augmented.q(policy, np.repeat(mdp.r(reward), 4, axis=0), gamma)[::4]

    def distance(stay: float, leave: float) -> float:
        markov = np.array([[1 - leave, leave], [stay, 1 - stay], [0, 1]])
        return float(np.abs(mdp.q(markov, reward, gamma) - q).max())

    stays = np.linspace(0, 1, resolution)
    distances = [min(distance(stay, leave) for leave in np.linspace(0, 1, 11)) for stay in stays]
    nearest = 1 / (2 + gamma)
    return {
        "mdp": "L: a stays, b goes to R, both for 0. R: a stays for 1, b ends for 0.",
        "policy": "from L: bb, from R: aab",
        "q": {"L": q[0], "R": q[1]},
        "stay": stays,
        "distance": distances,
        "nearest_stay": nearest,
        "nearest_distance": distance(nearest, 1.0),
        "closed_form": gamma / 2,
    }


def greedy_on_memory(gamma: float) -> Metrics:
    """Q of the policy with memory, and the return of the policy that is greedy in it.

    Memory: 0 fresh, 1 played a first, 2 played b first.
    """
    mdp, reward = envs.one_state()
    augmented = envs.with_memory(mdp, 3, lambda memory, x, a: memory or a + 1)
    policy = TabularPolicy(np.array([[0.5, 0.5], [0, 1], [1, 0]]))
    r = np.repeat(mdp.r(reward), 3, axis=0)
    q = augmented.q(policy, r, gamma)[:1]
    greedy = improve(q)
    return {
        "mdp": "one state: a pays 1, b pays 0.",
        "policy": "abbb… or baaa…, each with probability 1/2",
        "gamma": gamma,
        "q": {"a": q[0, 0], "b": q[0, 1]},
        "value": float(augmented.v(policy, r, gamma)[0]),
        "greedy_action": "ab"[int(greedy.mode(0))],
        "greedy_value": float(mdp.v(greedy, reward, gamma)[0]),
    }


def greedy_on_open_set(gamma: float) -> Metrics:
    """Improvement over {L → L → R} alone, and over its suffix closure; everything over its power of γ."""
    mdp, reward = envs.binary_tree()
    policies = [TabularPolicy.constant(mdp, a, name) for a, name in enumerate("LR")]
    ghms = exact_ghms(mdp, policies, gamma, alpha=1.0)
    nu = GSP((0, 0, 1), (1.0, 1.0))
    q = evaluate(gsp_set([nu]), ghms, reward)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpenSetWarning)
        on_open = improve(q, allow_open_set=True)
    closed = suffix_closure([nu])
    on_closed = improve(evaluate(closed, ghms, reward))
    x0, x1 = mdp.index(""), mdp.index("R")

    def value_at_root(policy: TabularPolicy) -> float:
        return float(mdp.v(policy, reward, gamma)[x0] / gamma**2)

    return {
        "mdp": "a binary tree of depth 3; leaves LLR +1, RLR +2, RLL −1, all others 0.",
        "leaves": {"LLR": 1, "RLR": 2, "RLL": -1},
        "gsp": nu.name("LR"),
        "q": {"x0": q[0][x0] / gamma**2, "x1": q[0][x1] / gamma},
        "value": float(q.v[0, x0] / gamma**2),
        "open_value": value_at_root(on_open),
        "closed_set": closed.names("LR"),
        "closed_value": value_at_root(on_closed),
        "closed_policy": "".join("LR"[on_closed.pi[mdp.index(x)].argmax()] for x in ("", "R", "RL")),
        "warning": str(caught[0].message),
    }
