"""What is clicked is code: the Python and the command that do the same."""

from __future__ import annotations

import shlex

import numpy as np

from ggpi.studio.decisions import Settings
from ggpi.studio.worlds import World

HEAD = "import jax\nimport numpy as np\n\nimport ggpi\n\n"
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
        "state": np.array2string(np.asarray(state), separator=", ", precision=4, max_line_width=90),
    }
    made = world.code
    for name, value in fields.items():
        made = made.replace("{" + name + "}", value)
    if world.ghms.network is not None and (settings.gamma or settings.alpha):
        made += f"ghms   = ghms.with_gamma({ghms.gamma:g}).with_alpha({float(alpha)!r})\n"
    return HEAD + made + agent(settings, float(alpha)) + BEST


def agent(settings: Settings, alpha: float) -> str:
    """The lines that make the agent and its plan."""
    options = f"num_samples={settings.samples}"
    if settings.depth == 0:
        return (
            "graph  = ggpi.jumpy_graph(ghms, states, key=jax.random.key(0))  # states: an array of visited ones\n"
            f'agent  = ggpi.GGPIAgent(ghms, reward, depth="inf", graph=graph, {options})\n'
            "plan   = agent.plan(state, key=jax.random.key(0))\n"
        )
    if settings.planner == "beam":
        search = f"BeamSearch(depth={settings.depth}, alphas={alpha!r}, num_samples={settings.samples})"
        options = f"planner=ggpi.planning.{search}"
    else:
        options = f'depth={settings.depth}, {options}, first_actions="head"'
    if settings.planner == "halving":
        options += ", planner=ggpi.planning.SequentialHalving(2000)"
    return (
        f"agent  = ggpi.GGPIAgent(ghms, reward, {options})\n"
        "plan   = agent.plan(state, key=jax.random.key(0))\n"
    )


def command(world: World, settings: Settings, formula: str) -> str:
    """The command that plays episodes with these settings; empty where there is none."""
    own = world.ghms.gamma, world.ghms.alphas[0]
    is_own = (settings.gamma or own[0], settings.alpha or own[1]) == own
    if world.directory is None or settings.depth == 0 or settings.planner != "exhaustive" or not is_own:
        return ""
    reward = shlex.quote(f"formula:{formula}")
    words = f"ggpi play {shlex.quote(world.directory)} --reward {reward}"
    return f"{words} --depth {settings.depth} --samples {settings.samples}"
