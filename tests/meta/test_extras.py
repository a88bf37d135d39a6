"""Every extra of docs/install.md in an empty environment: it installs, and the command beside it runs.

Versions are the locked ones. uv makes the environments within seconds, from its cache if it can.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import ggpi
from ggpi._jax.batching import stack
from ggpi.ghm import GHMs
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.fit_directory import World, claim
from ggpi.policies import maze_policies, pendulum_policies
from pythons import can_install, find_uv

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| `pip install '\.\[(\w+)\]'` \|.*\| `(.*)` \|$",
    (ROOT / "docs" / "install.md").read_text("utf-8"),
    re.M,
)
QUICK = {
    "run": [],
    "fit": ["--steps", "1", "--transitions", "300"],
    "play": ["--episodes", "1", "--max-steps", "3", "--samples", "2", "--depth", "1"],
}
REACHER = "import gymnasium; gymnasium.make('Reacher-v5').reset(seed=0)"
RECORDED = """
import h5py, numpy
with h5py.File("recorded.hdf5", "w") as file, numpy.load("flat.npz") as arrays:
    for name in arrays:
        file[name] = arrays[name]
"""
CURVES = """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
(folder,) = __import__("pathlib").Path("results").iterdir()
events = EventAccumulator(str(folder)).Reload()
tags = events.Tags()["scalars"]
assert "held_out/swing 0.95" in tags, tags
assert [event.step for event in events.Scalars("loss")] == [1]
"""
STUDIO = """
import json, subprocess, sys, urllib.request
studio = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
address = studio.stdout.readline().strip()
health = json.load(urllib.request.urlopen(address.replace("/?", "/health?")))
studio.terminate()
assert health["status"] == "ok", health
"""
"""Serves until it is stopped: the address is the first line that it prints."""
BEFORE = {"data": RECORDED}
AFTER = {"ant": REACHER, "tensorboard": CURVES}
LEFT = {
    "cluster": "chain/figure.png",
    "video": "out.mp4",
    "ant": "ant/figure.png",
    "box2d": "lander/figure.png",
    "ogbench": "mazes/figure.png",
}
"""What a command leaves behind, if not `results`."""


def test_every_extra_for_users_is_documented():
    assert {extra for extra, _ in ROWS} == {
        "ant",
        "box2d",
        "maze",
        "ogbench",
        "data",
        "video",
        "tensorboard",
        "cluster",
        "studio",
    }


@pytest.fixture(scope="module")
def uv():
    found = find_uv()
    if found is None:
        pytest.skip("there is no uv")
    if not can_install(found):
        pytest.skip("uv cannot reach a package index")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands in the documentation name: policies, data and models."""
    folder = tmp_path_factory.mktemp("user")
    shutil.copy(ROOT / "tests" / "data" / "sb3" / "sac-pendulum.zip", folder / "swing.zip")
    up, down = maze_policies()[1::2]
    ggpi.save(folder / "up", up)
    ggpi.save(folder / "down", down)
    data = ggpi.collect("Pendulum-v1", pendulum_policies()[:1], 300, seed=0)
    flat = {"observations": data.state, "actions": data.action, "next_observations": data.next_state}
    np.savez(folder / "flat.npz", **flat)
    spec = ggpi.StateSpec(("cos", "sin", "speed"))
    frame = fit_frame(data.state, data.action, data.next_state, spec, None)
    models = stack([VAEConfig(width=8, depth=1).build(frame, key=jax.random.key(0))])
    policies = tuple(pendulum_policies()[:1])
    claim(folder / "models", World("Pendulum-v1", spec.names), {})
    ggpi.save(folder / "models" / "models", GHMs(policies, 0.9, (0.5,), (models, models)))
    return folder


def run(command, folder, can_skip=False):
    """Runs a command; what fails for want of a network may be skipped."""
    settings = {**os.environ, "PYTHONPATH": "", "MUJOCO_GL": ""}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=settings)
    said = f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    if can_skip and done.returncode and re.search(r"dns error|error sending request|timed out", done.stderr):
        pytest.skip(f"no network: {said}")
    assert done.returncode == 0, said


@pytest.mark.parametrize(("extra", "line"), ROWS, ids=[extra for extra, _ in ROWS])
def test_the_command_beside_an_extra_runs(extra, line, uv, folder, tmp_path):
    env, versions = tmp_path / "env", tmp_path / "versions.txt"
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    versions.write_text(re.sub(r" *\\$|^ +--hash.*\n", "", locked, flags=re.M))
    run([uv, "-q", "venv", "--python", sys.executable, str(env)], ROOT)
    python = str(env / ("Scripts" if os.name == "nt" else "bin") / "python")
    install = [uv, "-q", "pip", "install", "--python", python, "-c", str(versions), f".[{extra}]"]
    run(install, ROOT, can_skip=True)

    place = tmp_path / "place"
    shutil.copytree(folder, place)
    run([python, "-c", BEFORE.get(extra, "")], place)
    words = shlex.split(line)[1:]
    if words[0] == "studio":
        run([python, "-c", STUDIO, python, "-m", "ggpi", *words], place)
        return
    run([python, "-m", "ggpi", *words, *QUICK[words[0]]], place)
    assert (place / LEFT.get(extra, "results")).exists()
    run([python, "-c", AFTER.get(extra, "")], place)
