"""The fields of every message and every frame of `ggpi.studio.protocol`, in words.

Names lead into lists of objects, `plans[].value`, and arrays of binary frames are marked, `places: array`. Tests
compare these tables with what pages and servers say.
"""

from __future__ import annotations

from collections.abc import Mapping

Fields = Mapping[str, str]

HEARD: Mapping[str, Fields] = {
    "open": {"world": "the name of a world, one of `hello`'s"},
    "change": {
        "formula": "the reward, see `ggpi.rewards.grammar`; at most 4,000 characters",
        "depth": "1, 2, 3, or 0 for the closed loop",
        "second": "the depth of a second agent; −1: none",
        "planner": "one of `world`'s",
        "samples": "of each plan, 1 to 500",
        "gamma": "γ, 0.01 to 0.999, where the models allow another",
        "alpha": "α, 0.001 to 1, where the models allow another",
        "speed": "simulated time per time, 0 to 100; 0: as fast as possible",
        "repeat": "whether a new episode starts when one is over",
        "seed": "an episode: its start and its random numbers, 0 to 10⁹",
    },
    "play": {},
    "pause": {},
    "step": {},
    "reset": {},
    "put": {"x": "a place on the map", "y": ""},
    "explain": {"agent": "0 or 1", "t": "a step of its episode"},
    "diagnose": {},
}
"""From the page. All fields of `change` may be left out, none of the others."""

PLAN = {
    "plans[].policies": "the numbers of its policies",
    "plans[].value": "the estimate of its value",
    "plans[].chosen": "whether the agent follows it; the first one of the list",
}
TALLY = {"tally[].reached": "episodes of each agent that met the reward", "tally[].episodes": "of so many"}
SENT: Mapping[str, Fields] = {
    "hello": {
        "version": "of the protocol",
        "worlds": "names of worlds",
        "replay": "whether a recording follows, in which nothing can be changed",
        "film": "whether `POST /film?token=…` makes MP4 of a GIF",
    },
    "world": {
        "name": "what `open` calls it",
        "title": "what people call it",
        "names": "coordinates for formulas",
        "axes": "the two of them on the map",
        "bounds": "x, y of two corners of the map",
        "walls": "boxes that nothing enters, as `bounds`",
        "policies": "names of policies",
        "gamma": "γ of the models",
        "alphas": "α's of the models",
        "free": "whether other γ and α are possible",
        "largest": "the largest γ that is",
        "seconds": "that a step takes",
        "max_steps": "steps of an episode",
        "closed_loop": "whether depth 0 is possible",
        "put": "whether agents can be put at a place",
        "simulator": "whether `diagnose` is possible",
        "grid": "whether states are cells of width 1",
        "geometry[].kind": "of each shape of a body in three dimensions: sphere or capsule; null without a body",
        "geometry[].size": "radius and half length",
        "planners": "names of planners",
    },
    "settings": {
        **dict.fromkeys(HEARD["change"], "in force"),
        "put": "x, y, if agents were put there in this episode; else null",
        "due": "whether moments follow, as plans are out of date",
        "python": "a script that makes the same plans",
        "command": "a line for each agent; empty where `ggpi play` lacks the world",
    },
    "moment": {
        "agent": "0 or 1",
        "t": "steps since the episode began",
        "place": "x, y",
        "policy": "which policy acts now",
        "reward": "of the last step",
        "return": "Σ γᵗ Rₜ so far",
        "reached": "the step that first met a positive reward; null before",
        "ended": "whether the environment has ended the episode",
        "way": "x, y, policy and reward of each of the last steps before this one",
        **PLAN,
        "plans[].stderr": "the standard error of the value; null if there is none",
        "plans[].samples": "of an adaptive planner; else null",
        "plans[].nodes": "places in `nodes`: the clouds of its segments",
        "count": "plans that were compared; `plans` has the best of them",
        "nodes[].policy": "of a segment",
        "nodes[].level": "how many segments come before it",
        "nodes[].count": "points of its cloud",
        "draws": "samples of segments; 0 for exact values",
        "survivors": "plans after each round of an adaptive planner",
        "milliseconds": "that the decision took",
        **TALLY,
        "places: array": "[n, 2] all clouds, one after the other",
        "poses: array": "[frames, shapes, 7] places and quaternions of a body's shapes in the last step",
    },
    "rewards": {
        "formula": "whose reward it is",
        "size": "the width of a cell of the map",
        "places: array": "[n, 2] middles of cells",
        "values: array": "[n] the reward of entering them at rest",
    },
    "values": {
        "agent": "0 or 1",
        "size": "the width of a cell of the map; without values, as the arrays",
        "places: array": "[n, 2] middles of cells",
        "values: array": "[n] V in the closed loop; elsewhere there are no arrays",
    },
    "tally": TALLY,
    "explained": {
        "agent": "0 or 1",
        "t": "the step",
        "loop": "whether plans are of one policy, after which V counts",
        **PLAN,
        "plans[].value_stderr": "the standard error of the value",
        "plans[].difference": "the value of the first plan − that of this one, from common random numbers",
        "plans[].stderr": "the standard error of the difference",
        "plans[].true": "what simulation or exact evaluation says; without a simulator not there, as the next",
        "plans[].true_stderr": "its standard error",
        "samples": "for each plan, of the differences",
        "truth": "exact, simulated or none",
        "futures": "simulations for each plan",
    },
    "diagnosed": {
        "models[].policy": "whose futures the model samples",
        "models[].horizon": "γ or β",
        "models[].verdict": "good, usable, bad or exact",
        "models[].why": "what is wrong, in words",
        "models[].energy": "the energy distance between samples and true futures; not of exact models, as the next",
        "models[].energy_floor": "that between two sets of true futures",
        "models[].emd": "the earth mover's distance",
        "models[].emd_floor": "that between two sets of true futures",
        "places: array": "[models, 2, n, 2] samples of each model, and true futures",
    },
    "status": {"text": "what takes long; empty when it is done"},
    "error": {"text": "what was wrong"},
}
"""From the server."""


def tables() -> str:
    """Both tables as Markdown."""
    lines = []
    for title, kinds in (("From the page", HEARD), ("From the server", SENT)):
        lines += [f"## {title}", "", "| message | field | what it is |", "|---|---|---|"]
        for kind, fields in kinds.items():
            rows = list(fields.items()) or [("", "")]
            lines += [
                f"| {f'`{kind}`' if i == 0 else ''} | {f'`{name}`' if name else ''} | {words} |"
                for i, (name, words) in enumerate(rows)
            ]
        lines.append("")
    return "\n".join(lines)
