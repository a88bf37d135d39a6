"""Objects on disk: numbers of every kind come back, and policies that are code are given again."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.ghm.base import GHMs
from ggpi.ghm.tabular import TabularGHM
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP
from ggpi.storage.objects import Foreign, check_savable


@dataclass(frozen=True)
class Walker:
    """A policy of someone else's class."""

    name: str

    def sample(self, state, *, key):
        return self.mode(state)

    def mode(self, state):
        return jnp.zeros(())


def models(*policies):
    each = TabularGHM(jnp.zeros((len(policies), 3, 2, 3)))
    return GHMs(policies, 0.9, (0.5,), (each, each))


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ((np.float32(0.5), np.int64(3), np.bool_(True)), (0.5, 3, True)),
        ([np.inf, -np.inf, np.float32(np.inf)], [np.inf, -np.inf, np.inf]),
        ({np.float32(0.5): 1, np.int64(2): "two", np.inf: 3}, {0.5: 1, 2: "two", np.inf: 3}),
    ],
)
def test_numbers_come_back_plain(tmp_path, given, plain):
    ggpi.save(tmp_path, given)
    loaded = ggpi.load(tmp_path)
    assert loaded == plain
    for one, other in zip(loaded, plain, strict=True):
        assert type(one) is type(other)


def test_not_a_number_comes_back(tmp_path):
    ggpi.save(tmp_path, (np.nan,))
    assert np.isnan(ggpi.load(tmp_path)[0])


def test_a_policy_without_bounds(tmp_path):
    network = LayerNormMLP((2, 2), key=jax.random.key(0))
    bounds = {"low": -np.inf, "high": np.inf}
    policy = GaussianPolicy(network=network, name="free", inputs=(0, 1), scale=(1.0, 1.0), **bounds)
    ggpi.save(tmp_path, policy)
    again = ggpi.load(tmp_path)
    assert (again.low, again.high) == (-np.inf, np.inf)
    assert hash(jax.tree.structure(again)) == hash(jax.tree.structure(policy))


def test_policies_that_are_code_are_given_again(tmp_path):
    policies = Walker("one"), Walker("two")
    ggpi.save(tmp_path, models(*policies))
    assert all(isinstance(policy, Foreign) for policy in ggpi.load(tmp_path).policies)
    again = ggpi.load(tmp_path, policies=list(policies))
    assert again.policies == policies and again.alphas == (0.5,) and len(again.models) == 2


@pytest.mark.parametrize("given", [[], [Walker("one")], [Walker("two"), Walker("one")], [3, 4]])
def test_other_policies_are_refused(tmp_path, given):
    ggpi.save(tmp_path, models(Walker("one"), Walker("two")))
    with pytest.raises(
        ValueError, match=rf"models of 2 policies \(one, two\), got {len(given)} \(.*in this order"
    ):
        ggpi.load(tmp_path, policies=given)


def test_policies_for_what_has_none(tmp_path):
    ggpi.save(tmp_path, (1, 2))
    with pytest.raises(ValueError, match="holds a tuple, not models of policies; load it without policies="):
        ggpi.load(tmp_path, policies=[Walker("one")])


def test_what_cannot_be_saved_is_said_before():
    check_savable((Walker("one"),), "policies")
    with pytest.raises(TypeError, match=r"policies\.1 is a object, which cannot be saved.*attribute `name`"):
        check_savable((Walker("one"), object()), "policies")


def test_keys_that_print_alike_keep_their_own_arrays(tmp_path):
    saved = {1: np.zeros(2), "1": np.ones(2), "a.b": np.full(2, 2.0), "a": {"b": np.full(2, 3.0)}}
    ggpi.save(tmp_path, saved)
    again = ggpi.load(tmp_path)
    for found, expected in zip(jax.tree.leaves(list(again.values())), (0.0, 1.0, 2.0, 3.0), strict=True):
        np.testing.assert_array_equal(found, np.full(2, expected))


def test_directories_that_hold_nothing_of_ours(tmp_path):
    """The error says what is there, and where something may be."""
    with pytest.raises(FileNotFoundError, match=r"no directory .*nowhere; expected .*ggpi.save"):
        ggpi.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"has no about.json, .*: it holds nothing"):
        ggpi.load(tmp_path)
    (tmp_path / "policy.zip").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match=r"policy.zip is a file, .*ggpi.load_sb3 reads zips"):
        ggpi.load(tmp_path / "policy.zip")
    with pytest.raises(FileNotFoundError, match=r"has no about.json, .*: it holds policy.zip"):
        ggpi.load(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(FileNotFoundError, match="a fit that has not finished"):
        ggpi.load(tmp_path)
    ggpi.save(tmp_path / "models", (1, 2))
    with pytest.raises(FileNotFoundError, match=r"did you mean .*models\?"):
        ggpi.load(tmp_path)
