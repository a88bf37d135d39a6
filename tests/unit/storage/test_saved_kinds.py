"""Directories of every kind that were saved by earlier versions load for ever."""

import importlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import ggpi
from ggpi.storage import arrays as io
from ggpi.storage import tags

SAVED = Path(__file__).parents[2] / "data" / "saved"
KINDS = sorted(path.parent.name for path in SAVED.glob("*/about.json"))
EXPECTED = json.loads((SAVED / "expected.json").read_text(encoding="utf-8"))
NEWER = {"feature-log-noise/1", "feature-noise/1", "mode-policy/1"}
"""Tags of classes of which no directory is kept."""
LATER = {
    "diffusion-ghms",
    "directed-ghm",
    "energy-recipes",
    "family-ghms",
    "flow-matching-ghms",
    "ghms-2-exact",
    "ghms-2-vae",
    "jumpy-graph",
    "jumpy-graph-along",
    "ogbench-walkers",
    "one-network-ghms",
    "one-pass-ghms",
    "path-recipes",
    "timed-ghms",
}
"""Kinds that are newer than the first format, whose `about.json` had no digest and named module paths."""
UPGRADED = {"discrete-ghms", "exact-ghms", "flow-ghms", "foreign-ghms", "one-step-ghms", "vae-ghms"}
"""Kinds whose class has other fields today."""

NEWER_FIELDS = {"waves": 5, "num_waves": 5}
"""Fields that kinds did not have when they were saved, and their defaults."""
OF_TESTS = {"linear-gaussian/1", "ring/1"}
"""Tags of classes that have moved to the tests."""


def _make():
    spec = importlib.util.spec_from_file_location("make_saved", SAVED / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = _make()


def same(found, expected, where=""):
    """Equal, but for the rounding of another machine."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, part in expected.items():
            same(found[name], part, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, part in enumerate(expected):
            same(found[i], part, f"{where}.{i}")
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=where)
    else:
        assert type(found) is type(expected) and found == expected, where


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_loads(kind):
    index = json.loads((SAVED / kind / "about.json").read_text(encoding="utf-8"))
    assert index.keys() == {"format", "arrays", "sha256", "about", *(["digest"] if kind in LATER else [])}
    same(make.numbers(ggpi.load(SAVED / kind)), EXPECTED[kind])


@pytest.mark.parametrize("kind", sorted(UPGRADED - {"foreign-ghms"}))
def test_what_is_upgraded_and_saved_again_loads(kind, tmp_path):
    ggpi.save(tmp_path, ggpi.load(SAVED / kind))
    assert '"ghms/2"' in (tmp_path / "about.json").read_text(encoding="utf-8")
    same(make.numbers(ggpi.load(tmp_path)), EXPECTED[kind])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UPGRADED | {"family-ghms"}])
def test_what_is_saved_again_is_the_same(kind, tmp_path):
    ggpi.save(tmp_path, ggpi.load(SAVED / kind))
    (arrays, about), (again, about_again) = io.load_arrays(SAVED / kind), io.load_arrays(tmp_path)
    assert _of_then(about_again, about) == about and again.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(again[name], values)
        assert again[name].dtype == values.dtype


def _of_then(now, then):
    """A structure of today with the module paths of then, without newer fields that are None, empty or defaults."""
    if isinstance(now, dict) and isinstance(then, dict):
        if "class" in then:
            assert tags.BEFORE_TAGS.get(then["class"], then["class"]) == now["class"]
            now = {**now, "class": then["class"]}
        newer = now.keys() - then.keys()
        assert all(now[name] in (None, {"tuple": []}, NEWER_FIELDS.get(name)) for name in newer)
        return {name: _of_then(part, then.get(name)) for name, part in now.items() if name not in newer}
    if isinstance(now, list) and isinstance(then, list):
        return [_of_then(*parts) for parts in zip(now, then, strict=True)]
    return now


@pytest.mark.parametrize("tag", tags.RETIRED)
def test_trial_versions_say_why_they_cannot_be_loaded(tag, tmp_path):
    name, _, _ = tag.partition("/")
    kind = "path-recipes" if name == "diffusion-config" else "diffusion-ghms"
    arrays, about = io.load_arrays(SAVED / kind)
    text = json.dumps(about).replace(f'"{name}/2"', f'"{tag}"')
    assert tag in text
    io.save_arrays(tmp_path, arrays, json.loads(text))
    with pytest.raises(ggpi.FileError, match="fit the models again"):
        ggpi.load(tmp_path)


def test_no_kind_is_forgotten():
    assert sorted(make.OBJECTS) == KINDS == sorted(EXPECTED)
    there = set()
    for kind in KINDS:
        _classes(json.loads((SAVED / kind / "about.json").read_text(encoding="utf-8")), there)
    assert tags.LIBRARY.keys() - there == NEWER
    assert there - tags.LIBRARY.keys() == tags.UPGRADES.keys() | OF_TESTS


def _classes(structure, found):
    if isinstance(structure, dict):
        if "class" in structure:
            found.add(tags.BEFORE_TAGS.get(structure["class"], structure["class"]))
        structure = list(structure.values())
    if isinstance(structure, list):
        for part in structure:
            _classes(part, found)
