"""What is clicked is code: the Python that plans the same, to the last digit, and the command that plays it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ggpi.planning import SequentialHalving
from ggpi.studio.decisions import Settings, planner_of
from ggpi.studio.worlds import World

HEAD = "import jax\nimport numpy as np\n\nimport ggpi\n\n"
ASSIGNED = re.compile(r"^(\w+) +=", re.MULTILINE)
PLAN = """\
plan   = agent.plan(state, key=key)
print(plan.gsps[int(plan.best)].name(ghms.names))
"""
KEY = """\
key    = jax.random.fold_in(jax.random.fold_in(jax.random.key({seed}), {agent}), {t})
"""


class Moment(NamedTuple):
    """An agent of the page, and where it is in its episode."""

    settings: Settings
    state: np.ndarray
    seed: int = 0
    agent: int = 0
    t: int = 0


def python(world: World, formula: str, moments: Sequence[Moment]) -> str:
    """A script that makes the plans on the page, with their own random numbers: of one agent, or of two."""
    first, *others = moments
    made = models(world, first.settings, formula) + decision(world, first)
    for moment in others:
        made += f"\n# the second agent\n{decision(world, moment)}"
    return HEAD + aligned(made)


def models(world: World, settings: Settings, formula: str) -> str:
    """The lines that make `ghms` and `reward`."""
    ghms = world.models(settings.gamma, settings.alpha)
    alpha = float(settings.alpha or ghms.alphas[0])
    fields = {
        "gamma": repr(float(ghms.gamma)),
        "alpha": repr(alpha),
        "formula": repr(formula),
        "names": repr(world.names),
    }
    made = world.code
    for name, value in fields.items():
        made = made.replace("{" + name + "}", value)
    if world.ghms.network is not None and (settings.gamma or settings.alpha):
        made += f"ghms   = ghms.with_gamma({float(ghms.gamma)!r}).with_alpha({alpha!r})\n"
    return made


def decision(world: World, moment: Moment) -> str:
    """The lines that make an agent, and its plan with the key of the page."""
    settings, ghms = moment.settings, world.models(moment.settings.gamma, moment.settings.alpha)
    alpha = float(settings.alpha or ghms.alphas[0])
    made = agent(settings, alpha, ghms.alphas, len(ghms.policies))
    if settings.depth == 0:
        made = closed(world, settings, alpha)
    key = KEY.format(seed=moment.seed, agent=moment.agent, t=moment.t)
    return made + start(world, moment.state) + key + PLAN


def start(world: World, state: np.ndarray) -> str:
    """The line that makes a state, with all its digits."""
    if world.places is not None:
        return f"state  = {int(state)}\n"
    exact = np.asarray(state, np.float32)
    text = np.array2string(exact, separator=", ", floatmode="unique", max_line_width=90, threshold=exact.size)
    return f"state  = np.array({text}, np.float32)\n"


def aligned(lines: str) -> str:
    """The same lines, with all `=` of plain assignments below each other."""
    width = max(len(name) for name in ASSIGNED.findall(lines))
    return ASSIGNED.sub(lambda found: f"{found[1]:{width}} =", lines)


def closed(world: World, settings: Settings, alpha: float) -> str:
    """The lines that make an agent in the closed loop."""
    count = f"min({world.num_landmarks}, len(np.unique(states, axis=0)))"
    options = "".join(f", {name}={value}" for name, value in world.graph_options.items())
    return (
        f"{world.landmarks_code}"
        f"count  = {count}\n"
        f"graph  = ggpi.jumpy_graph(ghms, states, num_landmarks=count, alpha={alpha!r}{options}, "
        "key=jax.random.key(0))\n"
        f'agent  = ggpi.GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples={settings.samples})\n'
    )


def agent(settings: Settings, alpha: float, alphas: Sequence[float], num_policies: int) -> str:
    """The line that makes an agent of a depth."""
    options = f"num_samples={settings.samples}"
    if settings.planner == "beam":
        search = f"BeamSearch(depth={settings.depth}, alphas={alpha!r}, num_samples={settings.samples})"
        options = f"planner=ggpi.planning.{search}"
    else:
        plans = f"depth={settings.depth}"
        if len(alphas) > 1:
            plans = f"gsps=ggpi.compositions({num_policies}, {settings.depth}, {alpha!r})"
        options = f'{plans}, {options}, first_actions="head"'
    planner = planner_of(settings, num_policies, alpha)
    if isinstance(planner, SequentialHalving):
        options += f", planner=ggpi.planning.SequentialHalving({planner.budget})"
    return f"agent  = ggpi.GGPIAgent(ghms, reward, {options})\n"


def command(world: World, formula: str, moments: Sequence[Moment]) -> str:
    """A line for each agent, which plays an episode with its settings; nothing where `ggpi play` lacks the world."""
    if not world.played:
        return ""
    return "\n".join(shlex.join(_words(world, formula, moment)) for moment in moments)


def _words(world: World, formula: str, moment: Moment) -> list[str]:
    settings, own = moment.settings, world.ghms
    words = ["ggpi", "play", world.played, "--reward", f"formula:{formula}"]
    words += ["--depth", str(settings.depth or "inf"), "--samples", str(settings.samples)]
    if settings.depth and settings.planner != "exhaustive":
        words += ["--planner", settings.planner]
    if settings.gamma not in (None, own.gamma):
        words += ["--gamma", repr(float(settings.gamma))]
    if settings.alpha not in (None, own.alphas[0]):
        words += ["--alpha", repr(float(settings.alpha))]
    words += ["--episodes", "1", "--max-steps", str(world.max_steps), "--seed", str(moment.seed)]
    if world.at is not None:
        state = moment.state if world.places is None else world.place(moment.state)
        words.append("--start=" + ",".join(str(number) for number in np.asarray(state, np.float32)))
    return words
