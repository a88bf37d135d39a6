"""Success of OGBench's six methods on its point mazes, from its datasets `…-navigate-v0`: mean and deviation, %.

Park et al., "OGBench: benchmarking offline goal-conditioned RL", ICLR 2025, arXiv 2410.20092: five tasks × 50 episodes,
8 seeds; read from a later comparison that quotes the table. They learn goal-conditioned policies from a fixed dataset;
our data and policies are others.
"""

METHODS = ("GCBC", "GCIVL", "GCIQL", "QRL", "CRL", "HIQL")
SUCCESS: dict[str, tuple[tuple[int, int], ...]] = {
    "pointmaze-medium": ((9, 6), (63, 6), (53, 8), (82, 5), (29, 7), (79, 5)),
    "pointmaze-large": ((29, 6), (45, 5), (34, 3), (86, 9), (39, 7), (58, 5)),
    "pointmaze-giant": ((1, 2), (0, 0), (0, 0), (68, 7), (27, 10), (46, 9)),
    "pointmaze-teleport": ((25, 3), (45, 3), (24, 7), (4, 4), (24, 6), (18, 4)),
}
