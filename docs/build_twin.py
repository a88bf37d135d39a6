"""The studio without a server, for these pages: `docs/play/`, from the studio's own page and `docs/twin/`.

Only the connection differs: `docs/twin/link.js` answers in the page what the server would. Weights and worlds are
copied from the package, so that there is one of each.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.envs.gridworlds import MOVES, four_rooms
from ggpi.envs.point_mass import PointMass
from ggpi.storage.pretrained import WEIGHTS
from ggpi.studio import catalogue, code
from ggpi.studio.decisions import Settings
from ggpi.studio.server import STATIC
from ggpi.studio.worlds import World, about

DOCS = Path(__file__).parent
MODELS = "point-mass-ghms"
SAMPLED = """\
state  = np.array({state}, np.float32)
key    = jax.random.key(0)
"""
EXACT = """\
state    = {state}
gsps     = ggpi.compositions(num_policies=4, depth={depth}, alpha={alpha})
q        = ggpi.evaluate(gsps, ghms, reward)
policy   = ggpi.improve(q)
print(policy.pi[state])
"""


def build(out: Path = DOCS / "play") -> Path:
    """Writes the page to a directory, and returns it."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for place in [
        *STATIC.glob("*.js"),
        *STATIC.glob("*.css"),
        *STATIC.glob("*.svg"),
        *(DOCS / "twin").glob("*.js"),
    ]:
        shutil.copy(place, out)
    (out / "index.html").write_text(_page(), encoding="utf-8")
    (weights,) = (WEIGHTS / MODELS / "models").glob("*.safetensors")
    shutil.copy(weights, out / "point-mass.safetensors")
    found = {"four-rooms": _four_rooms(catalogue.four_rooms()), "point-mass": _point_mass()}
    (out / "worlds.json").write_text(json.dumps(found, default=_plain), encoding="utf-8")
    return out


def _page() -> str:
    """The studio's page, beside its files, without what needs simulation."""
    text = (STATIC / "index.html").read_text(encoding="utf-8").replace('"/static/', '"./')
    text = text.replace("<span>studio</span>", "<span>in the browser</span>").replace("ggpi studio", "ggpi")
    for name in ("why", "tab-why", "tab-models"):
        text = text.replace(f'id="{name}"', f'id="{name}" hidden')
    return text


def _shared(world: World, start: Any, python: str) -> dict[str, Any]:
    """What the page needs of a world; the closed loop and simulation are left to the studio."""
    told = about(world) | {"closed_loop": False, "simulator": False, "planners": ["exhaustive"]}
    command = code.command(world, "FORMULA", [code.Moment(Settings(2, samples=100), np.asarray(start))])
    for said, name in (
        ("formula:FORMULA", "'formula:{formula}'"),
        ("--depth 2", "--depth {depth}"),
        ("--samples 100", "--samples {samples}"),
    ):
        command = command.replace(said, name)
    if world.relearn is not None:
        command += " --gamma {gamma} --alpha {alpha}"
    command = re.sub(r"--start=\S+", "--start={place}", command)
    return told | {
        "formula": world.formula,
        "samples": world.samples,
        "start": start,
        "code": code.HEAD + code.aligned(python),
        "command": command,
    }


def _four_rooms(world: World) -> dict[str, Any]:
    assert world.places is not None
    mdp = four_rooms()
    told = _shared(world, int(world.body(0).state), world.code + EXACT)
    moves = [(int(column), -int(row)) for row, column in MOVES]
    landing = mdp.P.argmax(axis=2).tolist()
    return told | {"places": world.places.tolist(), "landing": landing, "moves": moves}


def _point_mass() -> dict[str, Any]:
    world = catalogue.WORLDS["point-mass"]()
    ghms = world.ghms
    agent = code.agent(Settings(2, samples=100), 0.1, ghms.alphas, len(ghms.policies))
    agent = agent.replace("depth=2", "depth={depth}").replace("100", "{samples}")
    python = world.code + agent + SAMPLED + code.PLAN
    physics = PointMass()
    told = _shared(world, world.body(0).state.tolist(), python)
    return told | {"drag": physics.drag, "force": physics.force}


def _plain(value: Any) -> Any:
    return value.tolist()


if __name__ == "__main__":
    print(build())
