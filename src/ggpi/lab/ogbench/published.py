"""What others report of OGBench's mazes, from its datasets `…-navigate-v0`: success in %.

Park et al., "OGBench: benchmarking offline goal-conditioned RL", ICLR 2025, arXiv 2410.20092: mean and deviation of six
methods, five tasks × 50 episodes, 8 seeds; read from later comparisons that quote the table, of which none that we
found has antmaze-teleport. For that maze there are the means of a public rerun of five of the methods, with OGBench's
settings and 3 seeds: "ECE 567 Project 3: Reproducing OGBench offline GCRL baselines", on GitHub. These methods learn
goal-conditioned policies from a fixed dataset; our data and policies are others.

Farebrother et al., "Compositional planning with jumpy world models", arXiv 2602.19634: goal-conditioned policies alone,
and with planning over their sequences. These numbers are second-hand: from notes about the paper, not read in it.
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
RERUN = {"antmaze-teleport": {"GCIVL": 39, "GCIQL": 30, "QRL": 33, "CRL": 54, "HIQL": 40}}
"""Means of methods that others ran again."""
JUMPY: dict[str, dict[str, tuple[int, int]]] = {
    "antmaze-medium": {"GC-BC": (49, 85), "CRL": (88, 97)},
    "antmaze-large": {"GC-BC": (18, 73), "HFBC": (78, 92)},
    "antmaze-giant": {"HFBC": (42, 79), "CRL": (16, 29)},
}
"""Jumpy world models: a base policy alone, and planning with it."""


def quoted(maze: str) -> dict[str, str]:
    """Method → its success in a maze, as it is quoted."""
    found = dict(zip(METHODS, SUCCESS.get(maze, ()), strict=False))
    words = {name: f"{mean} ± {deviation}" for name, (mean, deviation) in found.items()}
    return words | {name: f"{mean}" for name, mean in RERUN.get(maze, {}).items()}


def means(maze: str) -> dict[str, int]:
    """Method → its mean success in a maze."""
    return {name: int(words.split()[0]) for name, words in quoted(maze).items()}
