"""Success of OGBench's six methods on its mazes, from its datasets `…-navigate-v0`: mean and deviation, %.

Park et al., "OGBench: benchmarking offline goal-conditioned RL", ICLR 2025, arXiv 2410.20092: five tasks × 50 episodes,
8 seeds; read from later comparisons that quote the table, of which none that we found has antmaze-teleport. They learn
goal-conditioned policies from a fixed dataset; our data and policies are others.
"""

METHODS = ("GCBC", "GCIVL", "GCIQL", "QRL", "CRL", "HIQL")
SUCCESS: dict[str, tuple[tuple[int, int], ...]] = {
    "pointmaze-medium": ((9, 6), (63, 6), (53, 8), (82, 5), (29, 7), (79, 5)),
    "pointmaze-large": ((29, 6), (45, 5), (34, 3), (86, 9), (39, 7), (58, 5)),
    "pointmaze-giant": ((1, 2), (0, 0), (0, 0), (68, 7), (27, 10), (46, 9)),
    "pointmaze-teleport": ((25, 3), (45, 3), (24, 7), (4, 4), (24, 6), (18, 4)),
    "antmaze-medium": ((29, 4), (72, 8), (71, 4), (88, 3), (95, 1), (96, 1)),
    "antmaze-large": ((24, 2), (16, 5), (34, 4), (75, 6), (83, 4), (91, 2)),
    "antmaze-giant": ((0, 0), (0, 0), (0, 0), (14, 3), (16, 3), (65, 5)),
}
