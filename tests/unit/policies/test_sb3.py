"""Policies of Stable-Baselines3: the recorded actions of real files, and what is refused."""

import base64
import io
import json
import pickle
import zipfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from scipy import stats

import ggpi
from ggpi import PolicyBank, load_sb3
from ggpi.policies.networks import ACTIVATIONS, normaliser
from ggpi.policies.pickles import record_of
from ggpi.policies.sb3_layers import action_network
from ggpi.typing import Policy

DATA = Path(__file__).parents[2] / "data" / "sb3"
NAMES = sorted(path.stem for path in DATA.glob("*.zip"))
KEY = jax.random.key(0)
OLD = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
"""How files of old versions of PyTorch begin."""
PRELU = "<class 'torch.nn.modules.activation.PReLU'>"


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


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_those_of_the_real_thing(name):
    policy, known = loaded(name), recorded(name)
    assert isinstance(policy, Policy) and policy.name == name
    actions = np.asarray(policy.mode(known["states"]))
    assert actions.dtype == (np.float32 if actions.ndim == 2 else np.int32)
    np.testing.assert_allclose(actions, known["actions"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(policy.mode(known["states"][7]), known["actions"][7], atol=1e-5)
    assert len(np.unique(known["actions"], axis=0)) > 1, "the policy does not do the same everywhere"


def test_all_five_algorithms_are_recorded():
    assert {name.split("-")[0] for name in NAMES} == {"ppo", "a2c", "sac", "td3", "dqn"}


def test_distributions_are_those_of_the_real_thing():
    known = recorded("ppo-arm")
    mean, std = jax.vmap(loaded("ppo-arm").distribution)(known["states"])
    np.testing.assert_allclose(mean, known["mean"], atol=1e-5)
    np.testing.assert_allclose(std, known["std"], rtol=1e-5)
    known = recorded("sac-pendulum")
    mean, log_std = jax.vmap(loaded("sac-pendulum").function)(known["states"])
    np.testing.assert_allclose(mean, known["mean"], atol=1e-5)
    np.testing.assert_allclose(log_std, known["log_std"], atol=1e-5)
    known, policy = recorded("a2c-cartpole"), loaded("a2c-cartpole")
    for action in (0, 1):
        logs = policy.log_prob(known["states"], np.full(60, action))
        np.testing.assert_allclose(logs, known["logits"][:, action], atol=1e-5)
    known = recorded("dqn-cartpole")
    values = jax.vmap(loaded("dqn-cartpole").function.network)(known["states"])
    np.testing.assert_allclose(values, known["values"], atol=1e-5)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_are_those_of_pytorch(name):
    with np.load(DATA / "activations.npz") as known:
        np.testing.assert_allclose(ACTIVATIONS[name](known["x"]), known[name], atol=1e-6)


def test_samples_follow_the_policy():
    n = 4000
    known = recorded("a2c-cartpole")
    policy, states = loaded("a2c-cartpole"), np.tile(known["states"][3], (n, 1))
    share = np.exp(known["logits"][3, 1])
    assert abs(np.mean(policy.sample(states, key=KEY)) - share) < 5 * np.sqrt(share * (1 - share) / n)
    known = recorded("ppo-arm")
    policy, states = loaded("ppo-arm"), np.tile(known["states"][3], (n, 1))
    actions = np.asarray(policy.sample(states, key=KEY))
    assert (actions >= [-1, -3]).all() and (actions <= [2, 0.5]).all()
    for coordinate, bound in ((0, 0.5), (1, -1.0)):
        share = stats.norm.cdf(bound, known["mean"][3, coordinate], known["std"][3, coordinate])
        assert abs(np.mean(actions[:, coordinate] <= bound) - share) < 5 * np.sqrt(share * (1 - share) / n)
    for name in ("td3-arm", "dqn-cartpole"):
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
        assert abs((drawn <= bound).mean() - share) < 5 * np.sqrt(share * (1 - share) / n) + 1e-3


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
    two = record_of("gymnasium.spaces.discrete", "Discrete")()
    two.__setstate__({"n": 2})
    plain = normaliser(np.zeros(3), np.ones(3), 0.0, np.inf)
    network = action_network(Path("old.zip"), "ActorCriticPolicy", tensors, plain, "Tanh", two)
    x = wanted = rng.normal(size=3)
    for i, name in enumerate(layers):
        wanted = tensors[f"{name}.weight"] @ (np.tanh(wanted) if i else wanted) + tensors[f"{name}.bias"]
    np.testing.assert_allclose(network(jnp.asarray(x, jnp.float32)), wanted, rtol=1e-5)
    assert (tensors["action_net.weight"].shape, len(network.weights)) == ((2, 4), 3)
    strange = tensors | {"mlp_extractor.policy_net.1.weight": np.ones(4)}
    with pytest.raises(
        ValueError, match=r"old.zip: policy.pth has layers \[0, 1\] in mlp_extractor.policy_net"
    ):
        action_network(Path("old.zip"), "ActorCriticPolicy", strange, plain, "Tanh", two)
    extracted = tensors | {"features_extractor.linear.0.weight": np.ones((4, 4))}
    with pytest.raises(ValueError, match=r"holds features_extractor.linear.0.weight: feature extractors"):
        action_network(Path("old.zip"), "ActorCriticPolicy", extracted, plain, "Tanh", two)


def test_they_are_saved_and_loaded(tmp_path):
    policies = [loaded(name) for name in NAMES]
    ggpi.save(tmp_path / "policies", policies)
    for policy, again, name in zip(policies, ggpi.load(tmp_path / "policies"), NAMES, strict=True):
        assert again.name == name and eqx.tree_equal(policy, again)
        states = recorded(name)["states"]
        np.testing.assert_array_equal(policy.mode(states), again.mode(states))


def test_collect_and_fit():
    policies = [loaded("a2c-cartpole"), loaded("dqn-cartpole")]
    data = ggpi.collect("CartPole-v1", policies, 400, switch_every=10, num_envs=4)
    greedy = data.behaviour == 1
    np.testing.assert_array_equal(data.action[greedy], policies[1].mode(data.state[greedy]))
    small = ggpi.VAEConfig(width=16, depth=1)
    ghms = ggpi.fit(policies, data, 0.9, 0.5, key=KEY, model=small, steps=4, batch_size=32)
    assert ghms.policies == tuple(policies)


def test_what_does_not_fit_is_named_before_a_step():
    with pytest.raises(
        ValueError, match=r"policy 0 \(sac-pendulum\) cannot act on states of shape \(4,\): .*"
    ):
        ggpi.collect("CartPole-v1", [loaded("sac-pendulum")], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"takes observations of 4 numbers, got shape \(3,\)"):
        ggpi.collect("Pendulum-v1", [loaded("dqn-cartpole")], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"policy 0 \(td3-arm\) gives actions of shape \(2,\)"):
        ggpi.collect("Pendulum-v1", [loaded("td3-arm")], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"chooses between 2 actions, this environment has 3"):
        acrobot = policy_of_size(6)
        ggpi.collect("Acrobot-v1", [acrobot], 10, num_envs=1)
    data = ggpi.collect("Pendulum-v1", [loaded("sac-pendulum")], 300, num_envs=2)
    with pytest.raises(ValueError, match=r"policy 1 \(a2c-cartpole\) cannot act on states of shape \(3,\)"):
        ggpi.fit([loaded("sac-pendulum"), loaded("a2c-cartpole")], data, 0.9, 0.5, key=KEY)


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


# Hostile and foreign files ------------------------------------------------------------------------------------


class Payload:
    """Pickles to a program that makes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        import os

        return os.system, (f"touch {self.marker}",)


def torch_zip(pickled):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    return buffer.getvalue()


@pytest.mark.parametrize("where", ["policy_class", "action_space", "observation_space"])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_hostile_parts_of_the_json_are_refused(where, protocol, tmp_path):
    marker = tmp_path / "marker"
    content = pickle.dumps(Payload(marker), protocol)
    path = changed_data(tmp_path, **{where: {":serialized:": base64.b64encode(content).decode()}})
    with pytest.raises(
        ValueError, match=rf"changed.zip: data.{where}: it names (posix|nt).system, .*executed"
    ):
        load_sb3(path)
    assert not marker.exists()


def test_parts_of_the_json_that_are_not_needed_are_not_opened(tmp_path):
    """What was chosen is read beside the pickled part."""
    marker = tmp_path / "marker"
    hostile = blob(Payload(marker))
    chosen = {"policy_kwargs": hostile | {"net_arch": [12, 4], "activation_fn": PRELU}}
    policy = load_sb3(
        changed_data(tmp_path, "dqn-cartpole", lr_schedule=hostile, _last_obs=hostile, **chosen)
    )
    known = recorded("dqn-cartpole")
    np.testing.assert_array_equal(policy.mode(known["states"]), known["actions"])
    assert not marker.exists()


def test_hostile_tensors_and_statistics_are_refused(tmp_path):
    marker = tmp_path / "marker"
    hostile = pickle.dumps({"log_std": Payload(marker)})
    with pytest.raises(ValueError, match=r"changed.zip: policy.pth: it names (posix|nt).system"):
        load_sb3(changed(tmp_path, **{"policy.pth": torch_zip(hostile)}))
    bad = tmp_path / "bad.pkl"
    bad.write_bytes(hostile)
    with pytest.raises(
        ValueError, match=r"bad.pkl \(vecnormalize\): it names (posix|nt).system.*\(mean, var\)"
    ):
        load_sb3(DATA / "ppo-arm.zip", vecnormalize=bad)
    assert not marker.exists()


def test_unsupported_policies_are_refused_by_name(tmp_path):
    contrib = "sb3_contrib.common.recurrent.policies"
    for module, name in (
        ("stable_baselines3.common.policies", "ActorCriticCnnPolicy"),
        ("stable_baselines3.common.policies", "MultiInputActorCriticPolicy"),
        ("stable_baselines3.dqn.policies", "CnnPolicy"),
        (contrib, "RecurrentActorCriticPolicy"),
    ):
        path = changed_data(tmp_path, policy_class=named(module, name))
        with pytest.raises(
            ValueError, match=rf"changed.zip: data.policy_class is {module}.{name}, which is not"
        ):
            load_sb3(path)
    with pytest.raises(ValueError, match=r"data.policy_class: it names mine.Policy"):
        load_sb3(changed_data(tmp_path, policy_class=named("mine", "Policy")))
    with pytest.raises(ValueError, match=r"data.use_sde is true: gSDE"):
        load_sb3(changed_data(tmp_path, use_sde=True))
    for field, value in (
        ("features_extractor_class", "<class 'stable_baselines3.common.torch_layers.NatureCNN'>"),
        ("features_extractor_class", "<class 'mine.FlattenExtractor'>"),
        ("activation_fn", "functools.partial(<class 'torch.nn.modules.activation.ELU'>, alpha=2)"),
        ("activation_fn", "<class 'torch.nn.modules.activation.GLU'>"),
        ("activation_fn", "<class 'mine.ReLU'>"),
        ("attention", 3),
    ):
        with pytest.raises(ValueError, match=rf"changed.zip: data.policy_kwargs.{field} is "):
            load_sb3(changed_data(tmp_path, policy_kwargs={field: value}))


def test_unsupported_spaces_are_refused_by_name(tmp_path):
    from gymnasium.spaces import Dict, MultiDiscrete

    with pytest.raises(ValueError, match=r"data.observation_space is Dict, which is not supported; Box is"):
        load_sb3(changed_data(tmp_path, observation_space=blob(Dict(a=Box(-1, 1, (3,))))))
    with pytest.raises(ValueError, match=r"data.observation_space has shape \(4, 4\), only vectors"):
        load_sb3(changed_data(tmp_path, observation_space=blob(Box(-1, 1, (4, 4)))))
    with pytest.raises(ValueError, match=r"data.action_space is MultiDiscrete, .* Box or Discrete is"):
        load_sb3(changed_data(tmp_path, action_space=blob(MultiDiscrete([2, 2]))))
    with pytest.raises(ValueError, match=r"data.action_space starts at 1"):
        load_sb3(changed_data(tmp_path, "a2c-cartpole", action_space=blob(Discrete(2, start=1))))
    with pytest.raises(ValueError, match=r"takes 3 numbers, but data.observation_space has 5"):
        load_sb3(changed_data(tmp_path, observation_space=blob(Box(-1, 1, (5,)))))
    with pytest.raises(ValueError, match=r"gives 2 numbers, but data.action_space needs 3"):
        load_sb3(changed_data(tmp_path, action_space=blob(Box(-1, 1, (3,)))))


def test_damaged_and_foreign_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        load_sb3(tmp_path / "nowhere.zip")
    text = tmp_path / "text.zip"
    text.write_text("no zip")
    with pytest.raises(ValueError, match=r"text.zip is damaged or no zip file"):
        load_sb3(text)
    for member in ("data", "policy.pth", "_stable_baselines3_version"):
        with pytest.raises(ValueError, match=rf"changed.zip lacks '{member}'.* it holds "):
            load_sb3(changed(tmp_path, **{member: None}))
    for version in (b"0.8.0", b"3.1", b"what"):
        with pytest.raises(ValueError, match=r"_stable_baselines3_version is .* versions 1 and 2 are read"):
            load_sb3(changed(tmp_path, _stable_baselines3_version=version))
    for data, words in ((b"{", "not JSON"), (b"[]", "data is list"), (b"{}", "data lacks policy_class")):
        with pytest.raises(ValueError, match=rf"changed.zip: .*{words}"):
            load_sb3(changed(tmp_path, data=data))
    with pytest.raises(ValueError, match=r"data.action_space is damaged"):
        load_sb3(changed_data(tmp_path, action_space={":serialized:": "?"}))
    for content, words in (
        (b"x", "no zip file"),
        (OLD, "PyTorch before 1.6"),
        (torch_zip(b"x"), "damaged or no pickle"),
    ):
        with pytest.raises(ValueError, match=rf"policy.pth.*{words}"):
            load_sb3(changed(tmp_path, **{"policy.pth": content}))
    with pytest.raises(ValueError, match=r"policy.pth lacks action_net.weight; it holds nothing"):
        load_sb3(changed(tmp_path, **{"policy.pth": torch_zip(pickle.dumps({}))}))


def test_wrong_statistics(tmp_path):
    path = DATA / "sac-pendulum.zip"
    with pytest.raises(
        ValueError, match=r"vecnormalize: mean has shape \(2,\), but .*sac-pendulum.zip has .* 3"
    ):
        load_sb3(path, vecnormalize=(np.zeros(2), np.ones(3)))
    with pytest.raises(ValueError, match=r"a2c-cartpole.zip has observations of 4 numbers"):
        load_sb3(DATA / "a2c-cartpole.zip", vecnormalize=statistics("ppo-arm"))
    with pytest.raises(ValueError, match=r"var has numbers that no statistics have"):
        load_sb3(path, vecnormalize=(np.zeros(3), [1, 1, -1]))
    with pytest.raises(TypeError, match=r"a path or a pair \(mean, var\), got ndarray"):
        load_sb3(path, vecnormalize=np.zeros((2, 3)))
    other = tmp_path / "other.pkl"
    other.write_bytes(pickle.dumps({"mean": 0}))
    with pytest.raises(ValueError, match=r"other.pkl is no file of VecNormalize.save: it holds"):
        load_sb3(path, vecnormalize=other)


def test_without_the_suffix_and_with_a_name():
    assert load_sb3(str(DATA / "td3-arm")).name == "td3-arm"
    assert load_sb3(DATA / "td3-arm.zip", name="reach").name == "reach"


def test_a_damaged_file_is_refused_or_read_but_never_fails_otherwise(tmp_path):
    """Bytes are changed at random, in the pickles themselves, so that no checksum notices."""
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(DATA / "dqn-cartpole.zip") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(members["data"])
    with zipfile.ZipFile(io.BytesIO(members["policy.pth"])) as archive:
        inner = {name: archive.read(name) for name in archive.namelist()}
    (index,) = (name for name in inner if name.endswith("data.pkl"))

    def damaged(content):
        content = bytearray(content)
        content[rng.integers(len(content))] = rng.integers(256)
        return bytes(content)

    outcomes = []
    for attempt in range(200):
        now, tensors = dict(data), dict(inner)
        if attempt % 2:
            tensors[index] = damaged(inner[index])
        else:
            space = damaged(base64.b64decode(data["action_space"][":serialized:"]))
            now["action_space"] = {":serialized:": base64.b64encode(space).decode()}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in tensors.items():
                archive.writestr(name, content)
        path = changed(
            tmp_path, "dqn-cartpole", data=json.dumps(now).encode(), **{"policy.pth": buffer.getvalue()}
        )
        try:
            load_sb3(path)
            outcomes.append("read")
        except ValueError as error:
            assert "changed.zip" in str(error)
            outcomes.append("refused")
    assert min(outcomes.count("read"), outcomes.count("refused")) > 20
