"""What tests run in spawned processes, which import it by this name."""

import jax
import numpy as np

import ggpi


def best_action(path, P, key_data):
    mdp, policies = ggpi.TabularMDP(P), ggpi.load(path)
    ghms = ggpi.exact_ghms(mdp, policies, 0.9, 0.5)
    agent = ggpi.GGPIAgent(ghms, np.arange(mdp.num_states, dtype=float), depth=1, num_samples=8)
    return int(agent.act(3, key=jax.random.wrap_key_data(key_data)))
