"""Checked by basedpyright in `make check`, never run: public names have types, and mistakes are flagged."""

from typing import assert_type

import jax
import numpy as np

import ggpi
import ggpi.agent.agent
import ggpi.diagnosis.comparison
import ggpi.evaluation

mdp = ggpi.envs.four_rooms()
assert_type(mdp, ggpi.TabularMDP)
policies = [ggpi.TabularPolicy.constant(mdp, action) for action in range(4)]
assert_type(policies, list[ggpi.TabularPolicy])
gsps = ggpi.compositions(num_policies=4, depth=3, alpha=1 / 9)
assert_type(gsps, ggpi.GSPs)
ghms = ggpi.exact_ghms(mdp, policies, gamma=0.9, alpha=1 / 9)
assert_type(ghms, ggpi.GHMs)
q = ggpi.evaluate(gsps, ghms, mdp.indicator((1, 11)))
assert_type(q, ggpi.evaluation.QValues)
assert_type(ggpi.improve(q), ggpi.TabularPolicy)

agent = ggpi.GGPIAgent(ghms, ggpi.rewards.target([0.0, 1.0], radius=0.3), depth=2)
assert_type(agent.act(np.zeros(2), key=jax.random.key(0)), np.ndarray)
assert_type(agent.plan(np.zeros(2), key=jax.random.key(0)), ggpi.agent.agent.Plan)
assert_type(agent.predict(np.zeros(2))[0], np.ndarray)
assert_type(
    ggpi.compare("Pendulum-v1", ghms, q, agents={"depth 2": agent}), ggpi.diagnosis.comparison.Comparison
)
data = ggpi.data.read_npz("data.npz")
assert_type(data, ggpi.Transitions)
assert_type(ggpi.fit(policies, data, gamma=0.9, alpha=0.1, key=jax.random.key(0)), ggpi.GHMs)

ggpi.GGPIAgent(ghms, q, depth="two")  # pyright: ignore[reportArgumentType]
ggpi.GGPIAgent(ghms, q, depht=2)  # pyright: ignore[reportCallIssue]
ggpi.compositions(num_policies=4, depth=3, alpha="a")  # pyright: ignore[reportArgumentType]
ggpi.improove(q)  # pyright: ignore[reportAttributeAccessIssue]
