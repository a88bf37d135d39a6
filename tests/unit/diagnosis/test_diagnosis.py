"""Diagnosis: the exact model is found to be right, and each fault is found by the number that is there for it."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from chance import error_of_mean
from ggpi._jax.batching import stack
from ggpi.data import StateSpec
from ggpi.diagnosis import recorded_futures, true_futures
from ggpi.diagnosis.samples import draw
from ggpi.envs import GymVectorEnv
from ggpi.ghm import GHMs
from ggpi.ghm.abstract import AbstractDensityGHM
from ggpi.ghm.coordinates import Frame, fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.policies.linear import linear_policy, maze_policies
from linear_gaussian import LinearGaussian

KEY = jax.random.key(0)
SYSTEM = LinearGaussian(0.9, 0.5, 0.04, -0.4, 0.3, 0.6)
POLICY = linear_policy(SYSTEM.gain, SYSTEM.bias, SYSTEM.action_std, "steady", -np.inf, np.inf)
ENVS = GymVectorEnv(SYSTEM, 50, max_steps=60)
GAMMA, ALPHA = 0.8, 0.25
BETA = GAMMA * (1 - ALPHA)
FRAME = fit_frame(np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 1)), StateSpec(("x",)), None)


class Exact(AbstractDensityGHM):
    """μ of the linear-Gaussian system, with faults to choose from."""

    frame: Frame
    beta: jax.Array
    shift: jax.Array
    widen: jax.Array
    deaf: bool = eqx.field(static=True, default=False)
    collapsed: bool = eqx.field(static=True, default=False)

    @property
    def noise_size(self):
        return 2

    def _parts(self, state, action):
        if self.deaf:
            action = 0 * action
        if self.collapsed:
            state, action = 0 * state, 0 * action
        offsets, covariances = SYSTEM.components([0.0], [0.0], 80)
        first = SYSTEM.A[0, 0] * state[0] + SYSTEM.B[0, 0] * action[0]
        powers = jnp.asarray(SYSTEM.closed_loop[0, 0] ** np.arange(80))
        return powers * first + offsets[:, 0], jnp.sqrt(jnp.asarray(covariances[:, 0, 0]))

    def push(self, state, action, noise):
        means, spreads = self._parts(state, action)
        u = jax.scipy.stats.norm.cdf(noise[0])
        time = jnp.clip((jnp.log1p(-u) / jnp.log(self.beta)).astype(int), 0, 79)
        return (means[time] + self.shift + self.widen * spreads[time] * noise[1])[None]

    def log_prob(self, target, state, action):
        means, spreads = self._parts(state, action)
        weights = jnp.log1p(-self.beta) + np.arange(80) * jnp.log(self.beta)
        return jax.nn.logsumexp(weights + jax.scipy.stats.norm.logpdf(target[0], means, spreads))


def exact(beta, shift=0.0, widen=1.0, **faults):
    return Exact(FRAME, *map(jnp.asarray, (beta, shift, widen)), **faults)


def models(near=None, far=None):
    return GHMs((POLICY,), GAMMA, (ALPHA,), (stack([far or exact(GAMMA)]), stack([near or exact(BETA)])))


def numbers(ghms, source=SYSTEM, **options):
    found = ggpi.diagnose(ghms, None, source, key=KEY, **options)
    return found["steady"][f"{GAMMA:g}"], found["steady"][f"{BETA:g}"]


@pytest.fixture(scope="module")
def healthy():
    return numbers(models())


def test_the_exact_model_is_as_near_to_the_truth_as_the_truth(healthy):
    """Bounds are seven and more deviations over ten seeds away from their means; dependences vary by 0.03 and 0.015."""
    for about in healthy:
        assert about["energy"] < about["energy_floor"] + 0.01  # differs by 0.0004 ± 0.0008
        assert about["emd"] < 2 * about["emd_floor"]  # 1.04 ± 0.07 times
        assert about["value_error"] < 2 * about["value_error_floor"]  # 1.00 ± 0.11 times
        assert about["mean_error"] < 0.13  # 0.026 ± 0.012
        assert about["spread_ratio"] == pytest.approx(1, abs=0.08)  # ± 0.01
        assert about["state_dependence"] == pytest.approx(about["state_dependence_true"], abs=0.2)
        assert about["action_sensitivity"] == pytest.approx(about["action_sensitivity_true"], abs=0.1)
        assert about["left_out"] == 0
        assert (about["verdict"], about["why"]) == ("good", [])
    assert abs(healthy[1]["consistency"]) < 0.01
    assert "consistency" not in healthy[0]


def test_the_likelihood_is_the_entropy_of_the_truth(healthy):
    truth = true_futures(SYSTEM, [POLICY], 0, GAMMA)
    scores = [
        -SYSTEM.log_prob(futures, state, action, GAMMA).mean()
        for futures, state, action in zip(truth.future, truth.state, truth.action, strict=True)
    ]
    assert healthy[0]["nll"] == pytest.approx(np.mean(scores), rel=1e-4)


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ({"shift": 0.3}, lambda bad, good: bad["mean_error"] > 0.3 and bad["energy"] > good["energy"] + 0.05),
        ({"widen": 2.0}, lambda bad, good: bad["spread_ratio"] > 1.4),
        (
            {"deaf": True},
            lambda bad, good: abs(bad["action_sensitivity"]) < 0.007 < good["action_sensitivity"],
        ),
        (
            {"collapsed": True},
            lambda bad, good: bad["state_dependence"] < 0.008 < good["state_dependence"],
        ),
    ],
    ids=["shift", "widen", "deaf", "collapsed"],
)
def test_faults_are_found(healthy, fault, seen):
    """Over ten seeds a fault's sensitivity and dependence are −.001 ± .001, sound ones .12 within a factor of 1.5
    (bounds: six deviations); the shift's mean error .49 ± .03 and energy .18 ± .02; the ratio of spreads 1.87 ± .04.
    """
    bad, _ = numbers(models(far=exact(GAMMA, **fault)))
    assert seen(bad, healthy[0])
    assert bad["verdict"] != "good" and bad["why"]
    assert bad["emd"] > healthy[0]["emd"]


def test_a_model_that_ignores_the_first_action_looks_perfect_but_is_bad(healthy):
    """Its samples are exactly the same for both actions, and the true shift is known without noise but that of T."""
    bad, _ = numbers(models(far=exact(GAMMA, deaf=True)))
    assert bad["action_response"] == 0 and bad["verdict"] == "bad"
    assert bad["why"][0].startswith("ignores the first action")
    assert bad["nll"] < bad["nll_blank"] and bad["spread_ratio"] == pytest.approx(1, abs=0.1)


def test_horizons_that_contradict_each_other_are_found():
    """0.067, by a factor of 1.5 more or less, over ten seeds; 0.0008 ± 0.0006 where nothing is wrong."""
    _, near = numbers(models(near=exact(0.95)))
    assert near["consistency"] > 0.003


def test_trajectories_do_as_well():
    data = ggpi.collect(ENVS, [POLICY], 12_000, seed=1)
    far, near = numbers(models(), data)
    assert far["energy"] < far["energy_floor"] + 0.02 and near["energy"] < near["energy_floor"] + 0.02
    assert abs(far["state_dependence"] - far["state_dependence_true"]) < 0.2  # ± 0.03 over ten seeds
    assert "action_response" not in far, "a record does not tell what another action does"
    bad, _ = numbers(models(far=exact(GAMMA, shift=0.5)), data)
    assert bad["energy"] > far["energy"] + 0.05
    assert bad["nll"] == far["nll"], "a shift of samples is none of the density here"


def test_futures_of_a_record_are_those_of_the_policy():
    data = ggpi.collect(ENVS, [POLICY], 20_000, seed=2)
    n, beta = 4000, 0.9
    truth = recorded_futures(data, 0, beta, n)
    means = [SYSTEM.mean(x, a, beta)[0] for x, a in zip(truth.state, truth.action, strict=True)]
    error = truth.future[:, 0, 0] - means
    # one future of each of n rows, which are nearly independent: 7 errors, where 6 would do
    assert abs(error.mean()) < 7 * error.std() / np.sqrt(n)
    assert 0 < truth.left_out < 0.02 * 2 * n


def test_other_policies_steps_are_not_followed():
    data = ggpi.collect(ENVS, [POLICY, POLICY], 3000, switch_every=5, seed=3)
    truth = recorded_futures(data, 0, 0.8, 200)
    assert truth.left_out > 0
    far = recorded_futures(data, 0, 0.99, 200)
    assert len(np.unique(far.state, axis=0)) > 50, "not only the few rows with the longest record"
    with pytest.raises(ValueError, match="models of 1 policies, got 2"):
        ggpi.diagnose(models(), [POLICY, POLICY], data, key=KEY)


def test_records_that_tell_no_future_are_refused():
    data = ggpi.collect(ENVS, [POLICY], 300, seed=3)
    n = len(data)
    unknown = replace(data, behaviour=np.full(n, -1))
    loose = replace(data, episode=np.arange(n), step=np.zeros(n, int), truncated=np.ones(n, bool))
    some_end = replace(unknown, terminated=data.truncated, truncated=np.zeros(n, bool))
    for given, words in (
        (unknown, "policy 0 at β = 0.8 .* behaviour is −1.*--env"),
        (loose, "transitions are loose"),
        (some_end, "behaviour is −1"),
    ):
        with pytest.raises(ValueError, match=words):
            recorded_futures(given, 0, 0.8, 10)
    assert recorded_futures(unknown, 0, 0.0, 10).left_out == 0, "X₁ is known of every row"
    ends = replace(loose, terminated=np.ones(n, bool), truncated=np.zeros(n, bool))
    assert recorded_futures(ends, 0, 0.8, 10).left_out == 0, "a world of one step"


@pytest.mark.slow
def test_learned_models_and_environments_by_name():
    policies = ggpi.policies.linear.direction_policies()[:2]
    data = ggpi.collect("ggpi/PointMass-v0", policies, 300, switch_every=40)
    frame = fit_frame(data.state, data.action, data.next_state, ggpi.envs.PointMass.spec, None)
    vaes = [VAEConfig(width=8, depth=1).build(frame, key=key) for key in jax.random.split(KEY, 2)]
    ghms = GHMs(tuple(policies), 0.8, (0.25,), (stack(vaes), stack(vaes)))
    found = ggpi.diagnose(ghms, None, "ggpi/PointMass-v0", key=KEY, num_pairs=4, num_samples=32)
    assert list(found) == ["right", "up"]
    about = found["up"]["0.6"]
    assert about["nll"] <= about["negative_elbo"] + 0.02, "more draws, a tighter bound"
    assert about.pop("verdict") == "bad" and about.pop("why")
    assert all(np.isfinite(np.ravel(value)).all() for value in about.values())
    assert len(about["mean_true"]) == 4


def test_draws_belong_to_their_pairs():
    states, actions = np.array([[0.0], [5.0]]), np.zeros((2, 1))
    drawn = draw(exact(GAMMA), states, actions, 500, key=KEY)
    assert drawn.shape == (2, 500, 1)
    for state, found in ((0.0, drawn[0]), (5.0, drawn[1])):
        deviation = SYSTEM.covariance([state], [0.0], GAMMA)[0, 0] ** 0.5
        bound = error_of_mean(deviation, 500, 5 * deviation, comparisons=2)
        assert abs(found.mean() - SYSTEM.mean([state], [0.0], GAMMA)[0]) < bound


def test_dictionary_observations_by_keys(monkeypatch):
    pytest.importorskip("gymnasium_robotics")
    monkeypatch.setattr("ggpi.diagnosis.truth.VISITED", 32)
    name, sizes = "gymnasium_robotics:PointMaze_UMaze-v3", {"num_pairs": 2, "num_samples": 4}
    found = true_futures(name, maze_policies()[:1], 0, 0.5, keys=("observation",), **sizes)
    assert found.state.shape[1] == found.future.shape[-1] == 4
