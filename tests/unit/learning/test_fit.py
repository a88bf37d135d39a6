"""fit: what it refuses, what it keeps, and that nothing is lost when it is killed."""

import contextlib
import dataclasses
import itertools
import json
import shutil
import subprocess
import sys
import textwrap
import warnings
from inspect import unwrap as untyped  # as users call it: types are checked in tests only
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae
import ggpi.learning.losses
from ggpi.data import StateSpec
from ggpi.learning.event_file import TensorBoard
from ggpi.learning.fitting import _warn_if_blank, fit
from ggpi.learning.log import TrainingLog
from ggpi.learning.preparation import Inputs, _datasets
from ggpi.learning.recipe import Recipe
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP
from ggpi.storage import arrays as io

SMALL = ggpi.ghm.vae.VAEConfig(width=16, depth=1)
KEY = jax.random.key(0)


class Drift(eqx.Module):
    """Steps of about `mean` on a line."""

    mean: jax.Array
    name: str

    def sample(self, state, *, key):
        return jnp.clip(self.mean + 0.1 * jax.random.normal(key, (1,)), -1, 1)


POLICIES = [Drift(jnp.array([0.5]), "right"), Drift(jnp.array([-0.5]), "left")]


def walks(num_episodes=60, num_steps=40, seed=0):
    rng = np.random.default_rng(seed)
    behaviour = np.repeat(rng.integers(2, size=(num_episodes, num_steps // 10)), 10, axis=1)
    action = np.clip(np.where(behaviour == 0, 0.5, -0.5) + 0.1 * rng.normal(size=behaviour.shape), -1, 1)
    end = np.cumsum(action, axis=1)
    episode, step = np.indices(behaviour.shape)
    parts = [end - action, action, end]
    vectors = [part.reshape(-1, 1).astype(np.float32) for part in parts]
    last = (step == num_steps - 1).ravel()
    return ggpi.Transitions(*vectors, last & False, last, behaviour.ravel(), episode.ravel(), step.ravel())


DATA = walks()


def small_fit(**changes):
    given = {
        "gamma": 0.9,
        "alpha": 1 / 9,
        "model": SMALL,
        "steps": 20,
        "batch_size": 32,
        "key": KEY,
    } | changes
    return fit(POLICIES, given.pop("data", DATA), **given)


def leaves(ghms):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(ghms.models, eqx.is_array))]


@pytest.mark.slow
def test_it_learns_the_mean_and_spread_of_the_future():
    """From 0 with action ½: X_T is about T/2, so its mean is ½/(1−β) and its variance known.

    The horizons' means differ by a factor of two, which the bounds tell apart.
    """
    ghms = small_fit(
        steps=1000, batch_size=64, learning_rate=3e-3, model=ggpi.ghm.vae.VAEConfig(width=32, depth=2)
    )
    for alpha, beta in ((None, 0.9), (1 / 9, 0.8)):
        for policy, sign in ((0, 1), (1, -1)):
            model = ghms.segment(policy, alpha)
            keys = jax.random.split(jax.random.key(1), 4000)
            drawn = jax.vmap(
                lambda key, m=model, s=sign: m.sample(jnp.zeros(1), jnp.array([s * 0.5]), key=key)
            )(keys)
            assert np.mean(drawn) == pytest.approx(sign * 0.5 / (1 - beta), rel=0.35)
            assert np.std(drawn) == pytest.approx(
                (0.25 * beta / (1 - beta) ** 2 + 0.01 / (1 - beta)) ** 0.5, rel=0.4
            )


@pytest.mark.slow
def test_the_same_call_gives_the_same_models():
    for one, other in zip(leaves(small_fit()), leaves(small_fit()), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "loss",
    [
        ggpi.learning.losses.CETD(),
        ggpi.learning.losses.CETD(ema_decay=0.9),
        pytest.param(ggpi.learning.losses.CETD(copy_every=7), marks=pytest.mark.slow),
    ],
)
def test_a_run_that_was_cut_short_goes_on_bit_for_bit(tmp_path, loss, monkeypatch):
    recipe = Recipe(SMALL, loss, steps=20, batch_size=32, chunk=5)
    monkeypatch.setattr(TrainingLog, "EVERY", 0.0)
    whole = fit(POLICIES, DATA, gamma=0.9, alpha=0.5, recipe=recipe, key=KEY)
    write = TrainingLog.write

    def dies(log, step, *rest):
        write(log, step, *rest)
        if step == 15:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TrainingLog, "write", dies)
        fit(POLICIES, DATA, gamma=0.9, alpha=0.5, recipe=recipe, key=KEY, out=tmp_path)
    resumed = fit(POLICIES, DATA, gamma=0.9, alpha=0.5, recipe=recipe, key=KEY, out=tmp_path)
    for one, other in zip(leaves(whole), leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert steps == [5, 10, 15, 20]
    with pytest.raises(ValueError, match="other data, policies or settings"):
        fit(POLICIES, DATA, gamma=0.9, alpha=0.25, recipe=recipe, key=KEY, out=tmp_path)


@pytest.mark.slow
def test_more_steps_continue_a_finished_run(tmp_path):
    """At a constant learning rate as if it had been longer from the start, also if the first run ends within a chunk.

    A single step of a chunk is compiled as the others are: alone it would be rounded otherwise.
    """
    recipe = Recipe(chunk=5, decay="constant")
    fresh = small_fit(recipe=recipe, steps=14)
    first = small_fit(recipe=recipe, steps=6, out=tmp_path)
    continued = small_fit(recipe=recipe, steps=14, out=tmp_path)
    assert any((one != other).any() for one, other in zip(leaves(first), leaves(continued), strict=True))
    for one, other, saved in zip(
        leaves(fresh), leaves(continued), leaves(ggpi.load(tmp_path / "models")), strict=True
    ):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, saved)
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert steps == [5, 6, 10, 14]
    with pytest.raises(ValueError, match="a run of 14 steps, now steps is 10; more steps continue it"):
        small_fit(recipe=recipe, steps=10, out=tmp_path)
    assert steps[-1] == json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])["step"]


@pytest.mark.slow
def test_a_falling_learning_rate_follows_the_longer_line_when_a_run_continues(tmp_path, monkeypatch):
    """6 steps of a fall over 6, then those from 6 of a fall over 14: killed in between, it is still the same."""
    recipe = Recipe(chunk=4)
    monkeypatch.setattr(TrainingLog, "EVERY", 0.0)
    small_fit(recipe=recipe, steps=6, out=tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    whole = small_fit(recipe=recipe, steps=14, out=tmp_path / "a")

    def dies(report):
        if report.step == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_fit(recipe=recipe, steps=14, out=tmp_path / "b", callbacks=[dies])
    resumed = small_fit(recipe=recipe, steps=14, out=tmp_path / "b")
    for one, other in zip(leaves(whole), leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, other)


def gaussian(noise):
    network = LayerNormMLP((1, 2), key=KEY)
    return GaussianPolicy(network=network, name="go", inputs=(0,), scale=(1.0,), noise=noise)


def called(function, runs):
    return ggpi.policy_from(function, ([-1.0], [1.0]), runs=runs, name="go")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (called(lambda state: state, "jax"), called(lambda state: -state, "jax")),
        (called(lambda states: states, "python-batch"), called(lambda states: -states, "python-batch")),
        (gaussian(1.0), gaussian(0.01)),
    ],
)
def test_policies_that_act_differently_are_told_apart(one, other):
    def digest(policy):
        return Inputs([policy], DATA, (0.9,), Recipe(), StateSpec(("x",)), KEY).fingerprint()

    assert digest(one) == digest(one) != digest(other)


def test_a_directory_of_other_policies_is_refused(tmp_path, monkeypatch):
    def stops(training, state, log, *rest):
        log.resume(state, 1)
        log.checkpoint(state, 1, is_last=True)
        return state.models

    monkeypatch.setattr("ggpi.learning.fitting.train", stops)
    for policy in (gaussian(1.0), gaussian(1.0)):
        fit([policy], DATA, gamma=0.9, alpha=0.5, key=KEY, model=SMALL, out=tmp_path)
    with pytest.raises(ValueError, match="other data, policies or settings"):
        fit([gaussian(0.01)], DATA, gamma=0.9, alpha=0.5, key=KEY, model=SMALL, out=tmp_path)


@pytest.mark.slow
def test_a_process_killed_at_any_moment_loses_nothing(tmp_path):
    """A real SIGKILL, then the same command again."""
    script = textwrap.dedent(
        f"""
        import os, sys, threading
        sys.path.insert(0, {str(__file__).rsplit("/", 1)[0]!r})
        import test_fit as t
        TrainingLog = t.TrainingLog
        TrainingLog.EVERY = 0.0
        recipe = t.Recipe(t.SMALL, steps=60, batch_size=32, chunk=2)
        if sys.argv[1] == "kill":
            check = TrainingLog.checkpoint
            def killed(log, state, step, is_last):
                check(log, state, step, is_last)
                if step >= 30: os.kill(os.getpid(), 9)
            TrainingLog.checkpoint = killed
        t.fit(t.POLICIES, t.DATA, gamma=0.9, alpha=0.5, recipe=recipe, key=t.KEY, out=sys.argv[2])
        """
    )
    runs = {"kill": "a", "go on": "a", "once": "b"}
    codes = [
        subprocess.run(
            [sys.executable, "-c", script, mode, str(tmp_path / out)], capture_output=True
        ).returncode
        for mode, out in runs.items()
    ]
    assert codes == [-9, 0, 0]
    one, other = (ggpi.load(tmp_path / out / "models") for out in ("a", "b"))
    for left, right in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_array_equal(left, right)


def test_models_are_saved_and_loaded(tmp_path):
    ghms = small_fit(out=tmp_path)
    loaded = ggpi.load(tmp_path / "models")
    assert loaded.gamma == 0.9 and loaded.alphas == (1 / 9,)
    assert [policy.name for policy in loaded.policies] == ["right", "left"]
    arguments = jnp.zeros(1), jnp.zeros(1)
    one, other = (g.segment(1, 1 / 9).sample(*arguments, key=jax.random.key(3)) for g in (ghms, loaded))
    np.testing.assert_array_equal(one, other)


@pytest.fixture
def untrained(monkeypatch):
    """fit gives its fresh models."""
    monkeypatch.setattr("ggpi.learning.fitting.train", lambda training, state, *rest: state.models)


def test_a_discount_of_numpy_is_a_number_like_any_other(tmp_path, untrained):
    ghms = small_fit(gamma=np.float32(0.5), alpha=np.float32(0.5), out=tmp_path)
    loaded = ggpi.load(tmp_path / "models")
    assert type(ghms.gamma) is type(loaded.gamma) is float
    assert loaded.horizons == (0.5, 0.25) and loaded.alphas == (0.5,)


def test_an_action_that_nobody_takes_counts(untrained):
    """Three actions as the policy says, of which the data have two."""
    chosen = (DATA.action[:, 0] > 0).astype(np.int32)
    data = dataclasses.replace(DATA, action=chosen)
    policy = ggpi.policy_from(lambda state: (state[0] > 0).astype(int), 3, name="never 2")
    ghms = fit([policy], data, gamma=0.9, alpha=0.5, key=KEY, model=SMALL)
    assert ghms.models[0].frame.num_actions == 3


class Chooser(eqx.Module):
    """A policy of someone's own, which does not say how many actions there are."""

    name: str
    largest: int

    def sample(self, state, *, key):
        return jnp.where(state[0] > 0, self.largest, 0)


def test_an_action_that_the_data_lack_counts_also_when_a_policy_does_not_say_so(untrained):
    data = dataclasses.replace(DATA, action=(DATA.action[:, 0] > 0).astype(np.int32))
    ghms = fit([Chooser("own", 4)], data, gamma=0.9, alpha=0.5, key=KEY, model=SMALL)
    assert ghms.models[0].frame.num_actions == 5
    said = ggpi.policy_from(lambda state: (state[0] > 0).astype(int), 3, name="says 3")
    with pytest.raises(ValueError, match=r"policy 1 \(own\) takes action 4, .* have 3 actions"):
        fit([said, Chooser("own", 4)], data, gamma=0.9, alpha=0.5, key=KEY, model=SMALL)
    ghms = fit([said, Chooser("own", 2)], data, gamma=0.9, alpha=0.5, key=KEY, model=SMALL)
    assert ghms.models[0].frame.num_actions == 3


class Nameless:
    """A policy that lacks what saving needs."""

    def sample(self, state, *, key):
        return jnp.zeros(1)


def test_what_cannot_be_saved_is_not_trained(tmp_path, monkeypatch):
    monkeypatch.setattr("ggpi.learning.fitting.new_training", lambda *given: pytest.fail("trained"))
    with pytest.raises(TypeError, match=r"policies\.0 is a Nameless, which cannot be saved.*`name`"):
        fit([Nameless()], DATA, gamma=0.9, alpha=0.5, key=KEY, out=tmp_path)


@pytest.mark.parametrize(
    "loss", ["cetd", "cemc", pytest.param(ggpi.learning.losses.CETD(n_step=1), marks=pytest.mark.slow)]
)
def test_every_loss_trains_a_vae(loss):
    data = walks() if loss != "cemc" else one_policy_each()
    assert all(np.isfinite(leaf).all() for leaf in leaves(small_fit(loss=loss, data=data)))


def one_policy_each():
    long = walks(num_episodes=40, num_steps=100)
    return ggpi.Transitions(*[
        getattr(long, name) if name != "behaviour" else long.episode % 2
        for name in ("state", "action", "next_state", "terminated", "truncated", "behaviour", "episode", "step")
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([(0, 200)] * 3 + [(1, 400)] * 2, {(800, 600)}),
        ([(0, 200)] * 3 + [(1, 400)], {(1000, 1000)}),
        ([(0, 200), (0, 20), (1, 400)], {(620, 620)}),
    ],
)
def test_cemc_learns_from_few_trajectories(lengths, sizes):
    """What is held out may have no long one of some policy, and so may the rest."""
    policy, steps = np.array(lengths).T
    behaviour, episode = np.repeat(policy, steps), np.repeat(np.arange(len(steps)), steps)
    step = np.concatenate([np.arange(count) for count in steps])
    vectors = np.zeros((3, len(step), 1), np.float32)
    data = ggpi.Transitions(*vectors, step < 0, step < 0, behaviour, episode, step)
    found = set()
    few = pytest.warns(UserWarning, match="too few long trajectories to hold some out")
    for seed in range(8):
        with contextlib.nullcontext() if sizes == {(800, 600)} else few:
            kept, datasets = _datasets(
                data, 2, (0.9,), Recipe(SMALL, ggpi.learning.losses.CEMC()), jax.random.key(seed)
            )
        assert len(kept) == len(datasets[0].state)
        found.add(tuple(len(dataset.state) for dataset in datasets))
    assert found == sizes


def broken(field, value):
    parts = {name: getattr(DATA, name).copy() for name in DATA.__dataclass_fields__}
    parts[field][3] = value
    return ggpi.Transitions(**parts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": broken("next_state", np.nan)}, r"next_state.*1"),
        ({"data": broken("action", np.inf)}, r"action.*1"),
        ({"data": DATA[:20]}, "20 transitions are fewer than a batch of 32"),
        ({"gamma": 1.0}, r"γ lies in \[0, 1\), got 1.0"),
        ({"alpha": 0.0}, r"α.*got 0.0"),
        ({"model": "gan"}, "unknown model 'gan'; there are vae, flow"),
        ({"loss": "mse"}, "unknown loss 'mse'; there are cetd, cemc, ll2td"),
        ({"loss": "ll2td"}, "LL2TD needs densities, which a VAE does not have; use a flow"),
        ({"spec": ggpi.StateSpec(("x", "y"))}, "the spec has 2 coordinates, the states have 1"),
        ({"steps": 0}, "steps is at least 1, got 0"),
        ({"batch_size": 0}, "batch_size is at least 1, got 0"),
        ({"learning_rate": float("nan")}, "learning_rate is a number from 0, got nan"),
        ({"loss": "cemc", "data": walks(num_steps=10)}, "CEMC needs trajectories of policy"),
        ({"callbacks": [TensorBoard()]}, "needs out="),
    ],
)
def test_bad_input_before_any_training(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small_fit(**changes)


def test_a_number_of_steps_is_whole():
    given = SimpleNamespace(**vars(Recipe()) | {"steps": 2.5})
    with pytest.raises(TypeError, match=r"steps is a whole number, got 2\.5"):
        untyped(Recipe.__post_init__)(given)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    with pytest.raises(
        FloatingPointError, match=r"at step \d+; last good checkpoint: .*checkpoint \(step 0\)"
    ):
        small_fit(learning_rate=1e30, steps=300, out=tmp_path)


def test_foreign_and_damaged_directories_are_refused(tmp_path):
    ghms = small_fit(out=tmp_path)
    about = tmp_path / "models" / "about.json"
    text = about.read_text()
    assert '"vae/1"' in text
    for kind in ("os:system", "ggpi.storage.arrays:save", "ggpi.ghm.spline_flow:Flow"):
        about.write_text(text.replace("vae/1", kind))
        with pytest.raises(ggpi.FileError, match="digest"):
            ggpi.load(tmp_path / "models")
        index = json.loads(text.replace("vae/1", kind))
        del index["digest"]
        about.write_text(io.signed(io.to_json(index)))
        with pytest.raises(ggpi.FileError, match="is not a class of this version"):
            ggpi.load(tmp_path / "models")
    about.write_text(text)
    arrays = next((tmp_path / "models").glob("*.safetensors"))
    arrays.write_bytes(arrays.read_bytes()[:-4])
    with pytest.raises(ValueError, match="damaged"):
        ggpi.load(tmp_path / "models")
    assert ghms.names == ["right", "left"]


def test_models_that_are_worse_than_knowing_nothing(monkeypatch):
    """Mean and spread alone score ½ log 2πe = 1.42; the log-density ratio of LL2TD is no such number."""
    words = r"1 of 3 models have a held-out loss of up to 2\.50 .* knowing only mean and spread scores 1\.42"
    with pytest.warns(UserWarning, match=words):
        _warn_if_blank(np.array([0.3, 1.5, 2.5]), Recipe(loss=ggpi.learning.losses.CETD()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_if_blank(np.array([0.3, 1.5]), Recipe(loss=ggpi.learning.losses.CETD()))
        _warn_if_blank(np.array([2.5]), Recipe(loss=ggpi.learning.losses.LL2TD()))
    monkeypatch.setattr("ggpi.learning.fitting.MARGIN", -100.0)
    with pytest.warns(UserWarning, match=r"4 of 4 models .* after 20 steps"):
        small_fit()


@pytest.mark.slow
def test_training_can_be_watched():
    seen = []
    ghms = small_fit(
        steps=300, callbacks=[lambda report: seen.append((report.step, np.array(report.models.context)))]
    )
    assert [step for step, _ in seen] == [0, 250, 300]
    assert all((one != other).any() for (_, one), (_, other) in itertools.pairwise(seen))
    np.testing.assert_array_equal(seen[-1][1][:2], ghms.models[0].context)
