"""Walks of one policy, from which one model learns for all four directions.

States that random switching visits are turned as the ant's symmetry allows: so that a random one of the four
directions becomes +x, and so that the body faces it. From each the policy that walks towards +x acts alone, long enough
for recorded futures: at γ = .9, T exceeds 66 steps with a probability below 0.001.
"""

from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi._jax.jit import jit
from ggpi.data import Transitions
from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.envs.ant.symmetry import canonical
from ggpi.lab.ant import episodes as ant
from ggpi.policies.bank import PolicyBank
from ggpi.rollout.acting import act_at
from ggpi.rollout.collection import collect
from ggpi.rollout.episodes import Simulation, follow, recorded
from ggpi.storage.pretrained import pretrained

LENGTH = 70
"""Steps of a walk: futures from each of its first five states are recorded."""
SPACING = 3
"""Transitions of random switching for each walk that starts from one of them."""


def walks(num_walks: int, seed: int) -> Transitions:
    """`num_walks` walks of the policy that walks towards +x, `LENGTH` steps each."""
    policies, seed = pretrained("ant-policies"), ant.DATA + 1_000_000 * seed
    env = SparseAntVector(64, target=None)
    visited = collect(env, policies, SPACING * num_walks, switch_every=40, seed=seed)
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(visited), num_walks, replace=False)
    starts = np.asarray(_turned(visited.state[rows], rng.integers(len(policies), size=num_walks)))
    act = partial(act_at, PolicyBank(policies[:1]), np.int32(0))
    key = jax.random.key(seed)
    steps = list(
        follow(
            Simulation(AntDynamics(), starts, rng),
            lambda t, states: act(states, key, np.uint32(t)),
            LENGTH,
        )
    )
    return recorded(steps, [np.zeros(num_walks, int)] * LENGTH)


@jit
def _turned(states: Float[Array, "n 35"], directions: Int[Array, "n"]) -> Float[Array, "n 35"]:
    """The states as seen by the policy that walks towards +x, in the place of those of these directions."""
    return jax.vmap(lambda state, direction: canonical(state, direction)[0])(states, directions)
