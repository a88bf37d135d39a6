"""Tags of saved classes: the library's table, classes of users, and names that a hostile file may hold."""

import abc
import dataclasses
import importlib
import sys
import threading
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import ggpi
import saved_files
from ggpi.data import StateSpec
from ggpi.storage import tags

OF_TESTS = {"linear-gaussian/1", "ring/1"}
"""Classes that were part of the library and are now registered by tests."""
SOURCE = """
from dataclasses import dataclass
import ggpi

@ggpi.savable("{tag}")
@dataclass(frozen=True)
class Note:
    text: str
"""


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Each test starts with an empty registry of its own."""
    monkeypatch.setattr(tags, "_registered", {})


def with_class(directory, name, fields):
    """A directory, with the right digests, whose object has a class of this name."""
    ggpi.save(directory, (StateSpec(names=("x",)),))
    arrays, index = saved_files.read(directory)
    index["about"]["object"] = {"tuple": [{"class": name, "fields": fields}]}
    saved_files.write(directory, arrays, index)
    return directory


@pytest.mark.parametrize("tag", tags.LIBRARY)
def test_every_tag_of_the_library_is_a_concrete_dataclass_of_its_own(tag):
    kind = tags.class_of(tag)
    assert kind is not None and dataclasses.is_dataclass(kind)
    assert not getattr(kind, "__abstractmethods__", None)
    assert tags.tag_of(kind) == tag


def test_names_from_before_tags_are_tags_of_today():
    assert set(tags.BEFORE_TAGS.values()) <= {*tags.LIBRARY, *tags.UPGRADES, *OF_TESTS}
    assert {newer for newer, _ in tags.UPGRADES.values()} <= tags.LIBRARY.keys()
    assert all(tags.class_of(name) is tags.class_of(tag) for name, tag in tags.BEFORE_TAGS.items())
    assert not tags.BEFORE_TAGS.keys() & tags.LIBRARY.keys()


def test_a_class_of_a_user_comes_back_whole(tmp_path):
    @ggpi.savable("mixture/1")
    class Mixture(eqx.Module):
        weights: Float[Array, "n"]
        parts: tuple[Any, ...]
        size: int = eqx.field(static=True)

    @ggpi.savable("study/1")
    @dataclasses.dataclass(frozen=True)
    class Study:
        mixture: Mixture
        spec: StateSpec
        history: tuple[tuple[int, float], ...]
        counts: np.ndarray
        notes: dict[str, list[str]]

    mixture = Mixture(jnp.array([0.25, 0.75]), (ggpi.rewards.target((1, 2), 0.5), "rest"), 2)
    spec = StateSpec(names=("x", "y"), relative=(0,))
    study = Study(mixture, spec, ((1, 0.5), (2, np.inf)), np.arange(3), {"a": ["b", "c"]})
    ggpi.save(tmp_path, study)
    found = ggpi.load(tmp_path)
    assert type(found) is Study and type(found.mixture) is Mixture
    assert (found.spec, found.history, found.notes) == (study.spec, study.history, study.notes)
    assert found.mixture.size == 2 and found.mixture.parts[1] == "rest"
    assert isinstance(found.mixture.weights, jax.Array) and isinstance(found.counts, np.ndarray)
    np.testing.assert_array_equal(found.mixture.weights, mixture.weights)
    np.testing.assert_array_equal(found.counts, study.counts)
    assert float(found.mixture.parts[0].values(jnp.array([1.1, 2.1]))) == 1


def test_fields_of_a_user_are_checked(tmp_path):
    @ggpi.savable("pair/1")
    @dataclasses.dataclass(frozen=True)
    class Pair:
        count: int
        later: "OnlyForTypeCheckers"  # pyright: ignore[reportUndefinedVariable]

    @ggpi.savable("count/1")
    @dataclasses.dataclass(frozen=True)
    class Count:
        count: int

    with pytest.raises(ggpi.FileError, match=r"0\.count: expected int, got str many"):
        ggpi.load(with_class(tmp_path / "count", "count/1", {"count": "many"}))
    with pytest.raises(ggpi.FileError, match=r"count/1 has fields \['count'\], got \['other'\]"):
        ggpi.load(with_class(tmp_path / "other", "count/1", {"other": 1}))
    # annotations that cannot be resolved check nothing
    assert ggpi.load(with_class(tmp_path / "pair", "pair/1", {"count": 1, "later": 2}))[0].later == 2


@pytest.mark.parametrize(
    "name",
    [
        *("nobody/1", "vae/2", "vae", "VAE/1", "", "os:system", "ggpi.cli.main:main", "subprocess:Popen"),
        *(
            "builtins:eval",
            "ggpi.ghm.learned:AbstractGHM",
            "ggpi.ghm.vae:VAE.sample",
            "antigravity:antigravity",
        ),
        *("../vae/1", "ggpi.ghm.vae:__builtins__", "dataclasses:dataclass"),
    ],
)
def test_other_names_are_rejected_and_import_nothing(tmp_path, name):
    directory = with_class(tmp_path, name, {"x": 1})
    before = set(sys.modules)
    with pytest.raises(
        ggpi.FileError, match=r"is not a class of this version .*@ggpi.savable before loading"
    ):
        ggpi.load(directory)
    assert set(sys.modules) == before


def test_a_class_that_is_not_imported_yet(tmp_path, monkeypatch):
    (tmp_path / "tagged_notes.py").write_text(SOURCE.format(tag="note/1"))
    monkeypatch.syspath_prepend(tmp_path)
    directory = with_class(tmp_path / "saved", "note/1", {"text": "hello"})
    with pytest.raises(ggpi.FileError, match="'note/1' is not a class"):
        ggpi.load(directory)
    assert "tagged_notes" not in sys.modules
    notes = importlib.import_module("tagged_notes")
    monkeypatch.setitem(sys.modules, "tagged_notes", notes)
    assert ggpi.load(directory) == (notes.Note("hello"),)


def test_a_reloaded_module_registers_its_class_again(tmp_path, monkeypatch):
    (tmp_path / "reloaded_notes.py").write_text(SOURCE.format(tag="note/1"))
    monkeypatch.syspath_prepend(tmp_path)
    notes = importlib.import_module("reloaded_notes")
    monkeypatch.setitem(sys.modules, "reloaded_notes", notes)
    old = notes.Note("old")
    importlib.reload(notes)
    assert type(old) is not notes.Note
    ggpi.save(tmp_path / "saved", old)  # objects from before still have their tag
    assert type(ggpi.load(tmp_path / "saved")) is notes.Note


def test_a_tag_has_one_class_and_a_class_one_tag():
    @ggpi.savable("one/1")
    @dataclasses.dataclass
    class One:
        x: int

    @dataclasses.dataclass
    class Other:
        x: int

    with pytest.raises(ValueError, match=r"'one/1' is already registered for .*One"):
        ggpi.savable("one/1")(Other)
    with pytest.raises(ValueError, match=r"One is already registered as 'one/1'"):
        ggpi.savable("two/1")(One)
    assert tags.class_of("one/1") is One and tags.class_of("two/1") is None and tags.tag_of(Other) is None
    assert ggpi.savable("one/1")(One) is One


def test_a_subclass_needs_its_own_tag(tmp_path):
    @ggpi.savable("base/1")
    @dataclasses.dataclass
    class Base:
        x: int

    @dataclasses.dataclass
    class Derived(Base):
        y: int = 0

    assert tags.tag_of(Derived) is None
    with pytest.raises(TypeError, match=r"Derived, which cannot be saved: register its class"):
        ggpi.save(tmp_path, Derived(1, 2))


def abstract():
    class Abstract(eqx.Module):
        @abc.abstractmethod
        def sample(self): ...

    return Abstract


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (type("Plain", (), {}), TypeError, "is not a dataclass"),
        (abstract(), TypeError, "is abstract; register its concrete subclasses"),
        (StateSpec, ValueError, "is registered already, as 'state-spec/1'"),
    ],
)
def test_classes_that_cannot_be_registered(kind, error, words):
    with pytest.raises(error, match=words):
        ggpi.savable("thing/1")(kind)
    assert tags.class_of("thing/1") is None


@pytest.mark.parametrize(
    "tag", ["mdn", "MDN/1", "mdn/0", "mdn/1.5", "mdn/01", "os:system", "", "mdn /1", "mdn/1\n"]
)
def test_a_tag_is_a_name_and_a_version(tag):
    with pytest.raises(ValueError, match="lower-case words and a version"):
        ggpi.savable(tag)


def test_a_tag_of_the_library_is_taken():
    with pytest.raises(ValueError, match=r"'vae/1' belongs to the library"):
        ggpi.savable("vae/1")


def test_threads_register_and_look_up_together():
    kinds = [dataclasses.make_dataclass(f"Kind{i}", ["x"]) for i in range(200)]
    failures = []

    def work(part):
        try:
            for i in range(part, len(kinds), 4):
                ggpi.savable(f"kind-{i}/1")(kinds[i])
                assert tags.tag_of(kinds[i]) == f"kind-{i}/1" and tags.tag_of(dict) is None
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [tags.class_of(f"kind-{i}/1") for i in range(200)] == kinds
