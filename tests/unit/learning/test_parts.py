"""Training in parts: each model as if it were trained alone, the same on every executor, resumed part by part."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

import ggpi
from ggpi import cluster
from ggpi._jax.batching import part_of
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.parts import single_model
from ggpi.learning.preparation import Inputs
from ggpi.learning.recipe import CPU
from ggpi.policies.linear import linear_policy

pytestmark = pytest.mark.slow

GAMMA, ALPHA = 0.9, 0.5
RECIPE = replace(CPU, model=VAEConfig(width=4, depth=1), steps=30, batch_size=16, chunk=10)
KEY = jax.random.key(3)
POLICIES = [linear_policy([[0.0]], push, 0.1, f"push {push}") for push in (-0.5, 0.5)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    episode, step = (part.ravel() for part in np.indices((20, 20)))
    state, action = rng.normal(size=(2, 400, 1)).astype(np.float32)
    ends = step == 19
    return ggpi.Transitions(state, action, state + action, ends & False, ends, step // 5 % 2, episode, step)


def fit(data, **options):
    return ggpi.fit(POLICIES, data, gamma=GAMMA, alpha=ALPHA, key=KEY, **{"recipe": RECIPE, **options})


def is_same(one, other):
    """Bit for bit."""
    return eqx.tree_equal((one.models, one.one_step), (other.models, other.one_step))


@pytest.fixture(scope="module")
def alone(data):
    """The models of one worker."""
    with cluster.processes(1) as executor:
        return fit(data, executor=executor)


def test_executors_train_the_same_bits(data, alone):
    with cluster.processes(2) as executor:
        assert is_same(fit(data, executor=executor), alone)


@pytest.mark.slow
def test_ray_trains_the_same_bits(data, alone):
    pytest.importorskip("ray")
    with cluster.ray() as executor:
        assert is_same(fit(data, executor=executor), alone)


def test_each_model_is_trained_alone(data):
    """Model (policy, horizon) of a divided training is that of a training of nothing else, with its own key."""
    whole = fit(data, executor=cluster.local())
    for h, horizon in enumerate((GAMMA, GAMMA * (1 - ALPHA))):
        for k, policy in enumerate(POLICIES):
            own = replace(data, behaviour=np.where(data.behaviour == k, 0, -1))
            key = jax.random.fold_in(KEY, 2 * h + k)
            one = ggpi.fit([policy], own, gamma=horizon, alpha=(), recipe=RECIPE, key=key)
            assert eqx.tree_equal(part_of(whole.models[h], k), part_of(one.models[0], 0)), (h, k)


def test_other_policies_are_unknown_to_a_part(data):
    spec = ggpi.StateSpec(("x",))
    part = single_model(Inputs(POLICIES, data, (0.9, 0.5), RECIPE, spec, KEY), 1, 0.5, 3)
    assert part.policies == (POLICIES[1],) and part.horizons == (0.5,)
    assert set(part.data.behaviour) == {0, -1}
    np.testing.assert_array_equal(part.data.behaviour == 0, data.behaviour == 1)


class Stops(cluster.Executor):
    """Stops after some tasks, as if the driver had been killed."""

    workers = 1

    def __init__(self, count):
        self.count, self.begun = count, []

    def completed(self, function, tasks, *, begin=None):
        for i, (name, task) in enumerate(tasks.items()):
            if i == self.count:
                raise KeyboardInterrupt
            self.begun.append(name)
            yield name, function(task)

    def _pool(self, function):
        raise AssertionError

    def close(self):
        pass


def test_a_divided_training_resumes(data, tmp_path):
    expected = fit(data, executor=cluster.local())
    stopped = Stops(2)
    with pytest.raises(KeyboardInterrupt):
        fit(data, executor=stopped, out=tmp_path)
    assert stopped.begun == ["0: push -0.5 0.9", "1: push 0.5 0.9"]
    kept = {path: path.read_bytes() for path in (tmp_path / "parts").rglob("metrics.jsonl")}
    assert len(kept) == 2
    assert is_same(fit(data, executor=cluster.local(), out=tmp_path), expected)
    assert all(path.read_bytes() == lines for path, lines in kept.items()), "not trained twice"
    assert len(list((tmp_path / "parts").iterdir())) == 4
    assert is_same(ggpi.load(tmp_path / "models"), expected)


def test_parts_of_another_training_raise(data, tmp_path):
    fit(data, executor=cluster.local(), out=tmp_path)
    with pytest.raises(cluster.TaskError, match=r"task 0: push -0\.5 0\.9: "):
        fit(data, executor=cluster.local(), out=tmp_path, batch_size=8)


@pytest.mark.slow
def test_one_network_is_one_part(data):
    settings = {"alpha": "any", "recipe": replace(RECIPE, model=ggpi.FlowMatchingConfig(width=4, depth=1))}
    here, there = (
        ggpi.fit(POLICIES, data, gamma=GAMMA, loss="td2-cfm", executor=executor, key=KEY, **settings)
        for executor in (None, cluster.local())
    )
    assert is_same(here, there)


@pytest.mark.slow
def test_the_next_state_is_a_part(data):
    discrete = replace(data, action=(data.action[:, 0] > 0).astype(np.int32))
    policies = [ggpi.policy_from(lambda state, a=a: a, actions=2, name=str(a)) for a in (0, 1)]
    settings = {"gamma": GAMMA, "alpha": ALPHA, "recipe": RECIPE, "key": KEY}
    here, there = (ggpi.fit(policies, discrete, executor=e, **settings) for e in (None, cluster.local()))
    assert there.one_step is not None and eqx.tree_equal(here.one_step, there.one_step)


def test_callbacks_stay_here(data):
    with pytest.raises(ValueError, match="give no callbacks, or no executor"):
        fit(data, executor=cluster.local(), callbacks=[print])
