"""What is clicked is code: the Python and the command that do the same."""

from __future__ import annotations

import re
import shlex

import numpy as np

from ggpi.planning import SequentialHalving
from ggpi.studio.decisions import Settings, planner_of
from ggpi.studio.worlds import World

HEAD = "import jax\nimport numpy as np\n\nimport ggpi\n\n"
ASSIGNED = re.compile(r"^(\w+) +=", re.MULTILINE)
BEST = "print(plan.gsps[int(plan.best)].name(ghms.names))\n"


def python(world: World, settings: Settings, formula: str, state: np.ndarray) -> str:
    """A script that makes the plan on the page."""
    ghms = world.models(settings.gamma, settings.alpha)
    alpha = settings.alpha or ghms.alphas[0]
    fields = {
        "gamma": f"{ghms.gamma:g}",
        "alpha": repr(float(alpha)),
        "formula": repr(formula),
        "names": repr(world.names),
        "state": np.array2string(
            np.asarray(state), separator=", ", precision=4, suppress_small=True, max_line_width=90
        ),
    }
    made = world.code
    for name, value in fields.items():
        made = made.replace("{" + name + "}", value)
    if world.ghms.network is not None and (settings.gamma or settings.alpha):
        made += f"ghms   = ghms.with_gamma({ghms.gamma:g}).with_alpha({float(alpha)!r})\n"
    made += (
        agent(settings, float(alpha), len(ghms.policies))
        if settings.depth
        else closed(world, settings, alpha)
    )
    return HEAD + aligned(made) + BEST


def aligned(lines: str) -> str:
    """The same lines, with all `=` of plain assignments below each other."""
    width = max(len(name) for name in ASSIGNED.findall(lines))
    return ASSIGNED.sub(lambda found: f"{found[1]:{width}} =", lines)


def closed(world: World, settings: Settings, alpha: float) -> str:
    """The lines that make an agent in the closed loop, and its plan."""
    count = f"min({world.num_landmarks}, len(np.unique(states, axis=0)))"
    options = "".join(f", {name}={value}" for name, value in world.graph_options.items())
    return (
        f"{world.landmarks_code}"
        f"count  = {count}\n"
        f"graph  = ggpi.jumpy_graph(ghms, states, num_landmarks=count, alpha={float(alpha)!r}{options}, "
        "key=jax.random.key(0))\n"
        f'agent  = ggpi.GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples={settings.samples})\n'
        "plan   = agent.plan(state, key=jax.random.key(0))\n"
    )


def agent(settings: Settings, alpha: float, num_policies: int) -> str:
    """The lines that make the agent and its plan."""
    options = f"num_samples={settings.samples}"
    if settings.planner == "beam":
        search = f"BeamSearch(depth={settings.depth}, alphas={alpha!r}, num_samples={settings.samples})"
        options = f"planner=ggpi.planning.{search}"
    else:
        options = f'depth={settings.depth}, {options}, first_actions="head"'
    planner = planner_of(settings, num_policies, alpha)
    if isinstance(planner, SequentialHalving):
        options += f", planner=ggpi.planning.SequentialHalving({planner.budget})"
    return (
        f"agent  = ggpi.GGPIAgent(ghms, reward, {options})\n"
        "plan   = agent.plan(state, key=jax.random.key(0))\n"
    )


def command(world: World, settings: Settings, formula: str) -> str:
    """The command that plays episodes with these settings; empty for worlds without a directory of `ggpi fit`."""
    if world.directory is None:
        return ""
    reward = shlex.quote(f"formula:{formula}")
    words = f"ggpi play {shlex.quote(world.directory)} --reward {reward}"
    words += f" --depth {settings.depth or 'inf'} --samples {settings.samples}"
    if settings.depth and settings.planner != "exhaustive":
        words += f" --planner {settings.planner}"
    own = world.ghms
    if settings.gamma not in (None, own.gamma):
        words += f" --gamma {settings.gamma:g}"
    if settings.alpha not in (None, own.alphas[0]):
        words += f" --alpha {settings.alpha:g}"
    return words
