"""Policies of Stable-Baselines3: the recorded actions of real files."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from scipy import stats

import ggpi
import ggpi.ghm.vae
from chance import error_of_mean, is_share
from ggpi import load_sb3
from ggpi.policies import PolicyBank
from ggpi.policies.networks import ACTIVATIONS, normaliser
from ggpi.policies.sb3.layers import action_network
from ggpi.types import Policy
from sb3_files import DATA, NAMES, loaded, recorded, statistics

KEY = jax.random.key(0)


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_those_of_the_real_thing(name):
    policy, known = loaded(name), recorded(name)
    assert isinstance(policy, Policy) and policy.name == name
    actions = np.asarray(policy.mode(known["states"]))
    assert actions.dtype == (np.float32 if actions.ndim == 2 else np.int32)
    np.testing.assert_allclose(actions, known["actions"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(policy.mode(known["states"][7]), known["actions"][7], atol=1e-5)
    assert len(np.unique(known["actions"], axis=0)) > 1, "the policy does not do the same everywhere"


def test_all_algorithms_are_recorded():
    known = {"ppo", "a2c", "sac", "td3", "dqn", "gsde", "tqc", "qrdqn"}
    assert {name.split("-")[0] for name in NAMES} == known


@pytest.mark.parametrize("name", NAMES)
def test_deterministic_policies_take_the_mode(name, tmp_path):
    known = recorded(name)
    policy = load_sb3(DATA / f"{name}.zip", vecnormalize=statistics(name), deterministic=True)
    assert isinstance(policy, Policy) and policy.name == name
    assert policy.action_space == loaded(name).action_space
    for actions in (policy.sample(known["states"], key=KEY), policy.mode(known["states"])):
        np.testing.assert_allclose(actions, known["actions"], atol=1e-5, rtol=0)
    assert PolicyBank([policy, load_sb3(DATA / f"{name}.zip", deterministic=True)]).members == ((0, 1),)
    ggpi.save(tmp_path / "policy", policy)
    assert eqx.tree_equal(policy, ggpi.load(tmp_path / "policy"))


def test_distributions_are_those_of_the_real_thing():
    known = recorded("ppo-arm")
    mean, std = jax.vmap(loaded("ppo-arm").distribution)(known["states"])
    np.testing.assert_allclose(mean, known["mean"], atol=1e-5)
    np.testing.assert_allclose(std, known["std"], rtol=1e-5)
    for name in ("sac-pendulum", "tqc-pendulum", "gsde-pendulum"):
        known = recorded(name)
        mean, log_std = jax.vmap(loaded(name).function)(known["states"])
        np.testing.assert_allclose(mean, known["mean"], atol=1e-5)
        np.testing.assert_allclose(log_std, known["log_std"], atol=1e-5)
    known, policy = recorded("a2c-cartpole"), loaded("a2c-cartpole")
    for action in (0, 1):
        logs = policy.log_prob(known["states"], np.full(60, action))
        np.testing.assert_allclose(logs, known["logits"][:, action], atol=1e-5)
    for name in ("dqn-cartpole", "qrdqn-cartpole"):
        known = recorded(name)
        values = jax.vmap(loaded(name).function.network)(known["states"])
        np.testing.assert_allclose(values, known["values"], atol=1e-5)


def test_noise_of_features_is_that_of_the_real_thing():
    """Its deviation changes from state to state, and is the recorded one of gSDE's marginal."""
    known = recorded("gsde-arm")
    mean, std = jax.vmap(loaded("gsde-arm").distribution)(known["states"])
    np.testing.assert_allclose(mean, known["mean"], atol=1e-5)
    np.testing.assert_allclose(std, known["std"], rtol=1e-5)
    assert known["std"].max() > 1.2 * known["std"].min()


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_are_those_of_pytorch(name):
    with np.load(DATA / "activations.npz") as known:
        np.testing.assert_allclose(ACTIVATIONS[name](known["x"]), known[name], atol=1e-6)


def test_samples_follow_the_policy():
    n = 4000
    known = recorded("a2c-cartpole")
    policy, states = loaded("a2c-cartpole"), np.tile(known["states"][3], (n, 1))
    share = np.exp(known["logits"][3, 1])
    assert is_share(policy.sample(states, key=KEY), share, comparisons=4)
    known = recorded("ppo-arm")
    policy, states = loaded("ppo-arm"), np.tile(known["states"][3], (n, 1))
    actions = np.asarray(policy.sample(states, key=KEY))
    assert (actions >= [-1, -3]).all() and (actions <= [2, 0.5]).all()
    for coordinate, bound in ((0, 0.5), (1, -1.0)):
        share = stats.norm.cdf(bound, known["mean"][3, coordinate], known["std"][3, coordinate])
        assert is_share(actions[:, coordinate] <= bound, share, comparisons=4)
    known = recorded("gsde-arm")
    policy, states = loaded("gsde-arm"), np.tile(known["states"][3], (n, 1))
    share = stats.norm.cdf(0.3, known["mean"][3, 0], known["std"][3, 0])
    assert is_share(np.asarray(policy.sample(states, key=KEY))[:, 0] <= 0.3, share, comparisons=4)
    for name in ("td3-arm", "dqn-cartpole", "qrdqn-cartpole"):
        states = recorded(name)["states"]
        np.testing.assert_array_equal(loaded(name).sample(states, key=KEY), loaded(name).mode(states))


def test_sac_has_a_density_in_the_units_of_the_action():
    known, policy = recorded("sac-pendulum"), loaded("sac-pendulum")
    state = known["states"][0]
    edges = np.linspace(-2, 2, 8001)
    middles = (edges[1:] + edges[:-1])[:, None] / 2
    density = np.exp(policy.log_prob(np.tile(state, (8000, 1)), middles)) * (edges[1] - edges[0])
    assert density.sum() == pytest.approx(1, abs=1e-3)
    n = 4000
    drawn = np.asarray(policy.sample(np.tile(state, (n, 1)), key=KEY))[:, 0]
    for bound in (-1.0, 0.0, 1.5):
        share = density[middles[:, 0] <= bound].sum()
        error = error_of_mean(np.sqrt(share * (1 - share)), n, 1.0, comparisons=3)
        assert abs((drawn <= bound).mean() - share) < error + 1e-3, "the integral is a sum over a grid"


def test_statistics_as_arrays_do_the_same(tmp_path):
    """Far from zero single precision would lose digits, so these are the recorded files of the arm."""
    known = recorded("td3-arm")
    whole = loaded("td3-arm").function.network.normalise
    mean = np.asarray(whole.mean, float) + np.asarray(whole.rest, float)
    var = np.asarray(whole.deviation, float) ** 2
    assert abs(mean).max() > 900 and var.min() < 1
    pair = load_sb3(DATA / "td3-arm.zip", vecnormalize=(mean, var))
    np.testing.assert_allclose(pair.mode(known["states"]), known["actions"], atol=1e-5)
    assert float(loaded("ppo-arm").function.network.normalise.limit) == 2.0
    raw = load_sb3(DATA / "td3-arm.zip")
    assert abs(np.asarray(raw.mode(known["states"])) - known["actions"]).max() > 0.1


def test_one_architecture_is_one_group_whatever_its_statistics():
    pair = [load_sb3(DATA / "ppo-arm.zip", vecnormalize=given) for given in (None, ([1000.0] * 3, [1.0] * 3))]
    policies = [pair[0], loaded("td3-arm"), pair[1], loaded("ppo-arm")]
    bank = PolicyBank(policies)
    assert bank.members == ((0, 2, 3), (1,))
    states = np.broadcast_to(recorded("ppo-arm")["states"], (4, 60, 3))
    actions = eqx.filter_jit(lambda bank, states: bank.sample_each(states, key=KEY))(bank, states)
    assert actions.shape == (4, 60, 2)
    np.testing.assert_allclose(actions[1], policies[1].mode(states[1]), atol=1e-5)


def test_shared_layers_of_old_versions():
    """Before 1.8 the first layers could belong to actor and critic."""
    rng = np.random.default_rng(0)
    layers = {
        "mlp_extractor.shared_net.0": (5, 3),
        "mlp_extractor.policy_net.0": (4, 5),
        "action_net": (2, 4),
    }
    tensors = {f"{name}.weight": rng.normal(size=shape) for name, shape in layers.items()}
    tensors |= {f"{name}.bias": rng.normal(size=shape[0]) for name, shape in layers.items()}
    two = Discrete(2)
    plain = normaliser(np.zeros(3), np.ones(3), 0.0, np.inf)
    network = action_network(Path("old.zip"), "ActorCriticPolicy", tensors, plain, "Tanh", two)
    x = wanted = rng.normal(size=3)
    for i, name in enumerate(layers):
        wanted = tensors[f"{name}.weight"] @ (np.tanh(wanted) if i else wanted) + tensors[f"{name}.bias"]
    np.testing.assert_allclose(network(jnp.asarray(x, jnp.float32)), wanted, rtol=1e-5)
    assert (tensors["action_net.weight"].shape, len(network.weights)) == ((2, 4), 3)
    strange = tensors | {"mlp_extractor.policy_net.1.weight": np.ones(4)}
    with pytest.raises(
        ValueError, match=r"old.zip: policy.pth: mlp_extractor.policy_net: has layers \[0, 1\]"
    ):
        action_network(Path("old.zip"), "ActorCriticPolicy", strange, plain, "Tanh", two)
    extracted = tensors | {"features_extractor.linear.0.weight": np.ones((4, 4))}
    with pytest.raises(ValueError, match=r"features_extractor.linear.0.weight: feature extractors"):
        action_network(Path("old.zip"), "ActorCriticPolicy", extracted, plain, "Tanh", two)


def test_they_are_saved_and_loaded(tmp_path):
    policies = [loaded(name) for name in NAMES]
    ggpi.save(tmp_path / "policies", policies)
    for policy, again, name in zip(policies, ggpi.load(tmp_path / "policies"), NAMES, strict=True):
        assert again.name == name and eqx.tree_equal(policy, again)
        states = recorded(name)["states"]
        np.testing.assert_array_equal(policy.mode(states), again.mode(states))


@pytest.mark.slow
def test_collect_and_fit():
    policies = [loaded("a2c-cartpole"), loaded("dqn-cartpole")]
    data = ggpi.collect("CartPole-v1", policies, 400, switch_every=10, num_envs=4)
    greedy = data.behaviour == 1
    np.testing.assert_array_equal(data.action[greedy], policies[1].mode(data.state[greedy]))
    small = ggpi.ghm.vae.VAEConfig(width=16, depth=1)
    ghms = ggpi.fit(policies, data, gamma=0.9, alpha=0.5, key=KEY, model=small, steps=4, batch_size=32)
    assert ghms.policies == tuple(policies)


def test_what_does_not_fit_is_named_before_a_step():
    with pytest.raises(
        ValueError, match=r"policy 0 \(sac-pendulum\) cannot act on states of shape \(4,\): .*"
    ):
        ggpi.collect("CartPole-v1", [loaded("sac-pendulum")], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"takes observations of shape \(4,\), got \(3,\)"):
        ggpi.collect("Pendulum-v1", [loaded("dqn-cartpole")], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"policy 0 \(td3-arm\) returns actions of shape \(2,\)"):
        ggpi.collect("Pendulum-v1", [loaded("td3-arm")], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"chooses between 2 actions, this environment has 3"):
        acrobot = policy_of_size(6)
        ggpi.collect("Acrobot-v1", [acrobot], 10, num_envs=1)
    data = ggpi.collect("Pendulum-v1", [loaded("sac-pendulum")], 300, num_envs=2)
    with pytest.raises(ValueError, match=r"policy 1 \(a2c-cartpole\) cannot act on states of shape \(3,\)"):
        ggpi.fit([loaded("sac-pendulum"), loaded("a2c-cartpole")], data, gamma=0.9, alpha=0.5, key=KEY)


def policy_of_size(size):
    """The policy of the cart and pole, padded to look at more numbers."""
    policy = loaded("a2c-cartpole")
    more = size - 4
    first = policy.function.weights[0]
    norm = policy.function.normalise
    pads = jnp.pad(norm.mean, (0, more)), jnp.pad(norm.rest, (0, more)), jnp.pad(norm.deviation, (0, more))
    return eqx.tree_at(
        lambda p: (
            p.function.weights[0],
            p.function.normalise.mean,
            p.function.normalise.rest,
            p.function.normalise.deviation,
        ),
        policy,
        (jnp.pad(first, ((0, 0), (0, more))), *pads),
    )
