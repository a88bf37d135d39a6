"""The recorded files of Stable-Baselines3, and copies of them with parts changed."""

import base64
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np

from ggpi import load_sb3

DATA = Path(__file__).parent / "data" / "sb3"
NAMES = sorted(path.stem for path in DATA.glob("*.zip"))


def statistics(name):
    path = DATA / f"{name}-vecnormalize.pkl"
    return path if path.exists() else None


def loaded(name):
    return load_sb3(DATA / f"{name}.zip", vecnormalize=statistics(name))


def recorded(name):
    with np.load(DATA / f"{name}.npz") as arrays:
        return dict(arrays)


def changed(tmp_path, name="ppo-arm", **parts):
    """A copy of a zip with members replaced, or left out where the new content is None."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        members = {member: archive.read(member) for member in archive.namelist()} | parts
    path = tmp_path / "changed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            if content is not None:
                archive.writestr(member, content)
    return path


def changed_data(tmp_path, name="ppo-arm", **fields):
    """A copy of a zip whose JSON has other fields."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        data = json.loads(archive.read("data"))
    return changed(tmp_path, name, data=json.dumps(data | fields).encode())


def blob(value):
    return {":serialized:": base64.b64encode(pickle.dumps(value)).decode()}


def named(module, name):
    """The pickle of a class that need not exist."""
    content = f"c{module}\n{name}\n.".encode()
    return {":serialized:": base64.b64encode(content).decode()}
