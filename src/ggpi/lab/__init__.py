"""The laboratory: one module per figure or table of the paper, all under one contract (`ggpi.lab.contract`).

Each module has `Config`, `run(config, cells=compute)`, `table(metrics)` and `plot(metrics)`.
"""

EXPERIMENTS: dict[str, tuple[str, str]] = {
    "four-rooms-transfer": (
        "ggpi.lab.finite.four_rooms_transfer",
        "Fig 3: zero-shot transfer in four-rooms, depth 1 to 4",
    ),
    "four-rooms-policy-iteration": (
        "ggpi.lab.finite.four_rooms_policy_iteration",
        "Fig 4: policy iteration with GGPI, iterations and samples against depth",
    ),
    "learned-policy-iteration": (
        "ggpi.lab.iteration.learned_policy_iteration",
        "Alg 1 with learned models: iterations of GPI and of GGPI at depth 2",
    ),
    "cetd-dynamics": (
        "ggpi.lab.finite.cetd_dynamics",
        "Fig 8, 9: paths of CETD on the simplex, two three-state MDPs",
    ),
    "counterexamples": (
        "ggpi.lab.finite.counterexamples",
        "Ex D.1-D.3, Fig 10-12: where improvement over non-Markov policies fails",
    ),
    "chain": (
        "ggpi.lab.finite.chain",
        "Ex D.4, Fig 13: two improvements by GGPI against k+1 by policy iteration",
    ),
    "beta-zero": (
        "ggpi.lab.finite.beta_zero",
        "Fig 14: samples of composed models for β = 0 and β > 0",
    ),
    "ant-policies": (
        "ggpi.lab.ant.base_policies",
        "App E.1: the ant's four base policies, alone and under random switching",
    ),
    "ant-transfer": (
        "ggpi.lab.ant.transfer",
        "Fig 5 left, Tab 1: the ant reaches targets by GGPI at depth 1 to 3, with an oracle and baselines",
    ),
    "ant-visualise": (
        "ggpi.lab.ant.visualise",
        "Fig 6, 15, 16: what the ant's agents imagine, and what they do",
    ),
    "ant-training-budget": (
        "ggpi.lab.ant.training_budget",
        "Fig 19: success against training steps of the ant's models",
    ),
    "ant-depth-radius": (
        "ggpi.lab.ant.depth_radius",
        "When depth helps the ant: success against the target's radius and distance",
    ),
    "maze-transfer": (
        "ggpi.lab.maze.transfer",
        "PointMaze: targets behind corners, reached by policies that know directions, depth 1 to 4",
    ),
    "discrete-control": (
        "ggpi.lab.discrete.control",
        "CartPole, Acrobot, LunarLander: which first actions to score with learned models",
    ),
    "ghm-losses": (
        "ggpi.lab.models.losses",
        "Fig 5 right, Fig 18: VAEs and flows trained by CEMC, CETD and LL2TD",
    ),
    "ghm-vs-one-step": (
        "ggpi.lab.models.one_step",
        "Fig 17: a GHM against a one-step model unrolled for a geometric time",
    ),
    "vae-ablations": (
        "ggpi.lab.models.ablations",
        "App E: learning rate, KL weight, latent size and target of VAE models",
    ),
}
"""Name → (module, one line). Nothing is imported until an experiment is asked for."""
