"""Files of Stable-Baselines3 that are hostile, foreign, damaged or unsupported: what is refused, and how."""

import base64
import io
import json
import pickle
import warnings
import zipfile
from inspect import unwrap as untyped  # as users call it: types are checked in tests only

import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import ggpi
from ggpi import load_sb3
from sb3_files import DATA, blob, changed, changed_data, named, recorded, statistics

KEY = jax.random.key(0)
OLD = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
"""How files of old versions of PyTorch begin."""
PRELU = "<class 'torch.nn.modules.activation.PReLU'>"


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
    with pytest.raises(ValueError, match=r"bad.pkl: it names (posix|nt).system.*\(mean, var\)"):
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
            ValueError, match=rf"changed.zip: data.policy_class: {module}.{name} is not supported"
        ):
            load_sb3(path)
    with pytest.raises(ValueError, match=r"data.policy_class: it names mine.Policy"):
        load_sb3(changed_data(tmp_path, policy_class=named("mine", "Policy")))
    with pytest.raises(ValueError, match=r"data.use_sde: is set, but a TD3Policy has no gSDE"):
        load_sb3(changed_data(tmp_path, "td3-arm", use_sde=True))
    with pytest.raises(
        ValueError, match=r"log_std: has shape \(2,\), but 6 features and 2 actions need \(6, 2\)"
    ):
        load_sb3(changed_data(tmp_path, use_sde=True))
    with pytest.raises(ValueError, match=r"log_std: has shape \(6, 1\), expected \(2,\)"):
        load_sb3(changed_data(tmp_path, "gsde-arm", use_sde=False))
    for limit in (None, True, "2", float("nan")):
        with pytest.raises(ValueError, match=r"policy_kwargs.clip_mean: .*, expected a number"):
            load_sb3(changed_data(tmp_path, "gsde-pendulum", policy_kwargs={"clip_mean": limit}))
    with pytest.raises(ValueError, match=r"actor.mu.weight: is missing"):
        load_sb3(changed_data(tmp_path, "gsde-pendulum", policy_kwargs={"clip_mean": 0}))
    with pytest.raises(ValueError, match=r"has 14 outputs, which is not a multiple of 3 actions"):
        load_sb3(changed_data(tmp_path, "qrdqn-cartpole", action_space=blob(Discrete(3))))
    with pytest.raises(ValueError, match=r"is a Box, but a QRDQNPolicy has Discrete actions"):
        load_sb3(changed_data(tmp_path, "qrdqn-cartpole", action_space=blob(Box(-1, 1, (2,)))))
    for field, value in (
        ("features_extractor_class", "<class 'stable_baselines3.common.torch_layers.NatureCNN'>"),
        ("features_extractor_class", "<class 'mine.FlattenExtractor'>"),
        ("activation_fn", "functools.partial(<class 'torch.nn.modules.activation.ELU'>, alpha=2)"),
        ("activation_fn", "<class 'torch.nn.modules.activation.GLU'>"),
        ("activation_fn", "<class 'mine.ReLU'>"),
        ("attention", 3),
    ):
        with pytest.raises(ValueError, match=rf"changed.zip: data.policy_kwargs.{field}: "):
            load_sb3(changed_data(tmp_path, policy_kwargs={field: value}))


@pytest.mark.parametrize("name", ["CELU", "Hardshrink", "Hardtanh", "LogSigmoid", "RReLU", "Softsign", "GLU"])
def test_rare_activations_are_rejected_by_name(tmp_path, name):
    chosen = {"activation_fn": f"<class 'torch.nn.modules.activation.{name}'>"}
    words = rf"activation_fn: .*{name}'>\" is not supported; supported, .*: ELU, GELU, .*PReLU, ReLU, .*Tanh$"
    with pytest.raises(ggpi.FileError, match=words):
        load_sb3(changed_data(tmp_path, policy_kwargs=chosen))


def test_unsupported_spaces_are_refused_by_name(tmp_path):
    from gymnasium.spaces import Dict, MultiDiscrete

    with pytest.raises(ValueError, match=r"data.observation_space: Dict is not supported; Box is"):
        load_sb3(changed_data(tmp_path, observation_space=blob(Dict(a=Box(-1, 1, (3,))))))
    with pytest.raises(ValueError, match=r"data.observation_space: has shape \(4, 4\), only vectors"):
        load_sb3(changed_data(tmp_path, observation_space=blob(Box(-1, 1, (4, 4)))))
    with pytest.raises(ValueError, match=r"data.action_space: MultiDiscrete is .* Box or Discrete is"):
        load_sb3(changed_data(tmp_path, action_space=blob(MultiDiscrete([2, 2]))))
    with pytest.raises(ValueError, match=r"data.action_space: starts at 1"):
        load_sb3(changed_data(tmp_path, "a2c-cartpole", action_space=blob(Discrete(2, start=1))))
    with pytest.raises(ValueError, match=r"has 3 inputs, but data.observation_space has 5"):
        load_sb3(changed_data(tmp_path, observation_space=blob(Box(-1, 1, (5,)))))
    with pytest.raises(ValueError, match=r"has 2 outputs, but data.action_space needs 3"):
        load_sb3(changed_data(tmp_path, action_space=blob(Box(-1, 1, (3,)))))


def test_damaged_and_foreign_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        load_sb3(tmp_path / "nowhere.zip")
    text = tmp_path / "text.zip"
    text.write_text("no zip")
    with pytest.raises(ValueError, match=r"text.zip: not a zip file, or a damaged one"):
        load_sb3(text)
    for member in ("data", "policy.pth", "_stable_baselines3_version"):
        with pytest.raises(
            ValueError, match=rf"changed.zip: {member}: the zip has no such member; its members are "
        ):
            load_sb3(changed(tmp_path, **{member: None}))
    for version in (b"0.8.0", b"3.1", b"what"):
        with pytest.raises(
            ValueError, match=r"_stable_baselines3_version: .* versions 1 and 2 are supported"
        ):
            load_sb3(changed(tmp_path, _stable_baselines3_version=version))
    for data, words in (
        (b"{", "not JSON"),
        (b"[]", "data: is a list"),
        (b"{}", "data.policy_class: is missing"),
    ):
        with pytest.raises(ValueError, match=rf"changed.zip: .*{words}"):
            load_sb3(changed(tmp_path, data=data))
    with pytest.raises(ValueError, match=r"data.action_space: is damaged"):
        load_sb3(changed_data(tmp_path, action_space={":serialized:": "?"}))
    for content, words in (
        (b"x", "not a zip file"),
        (OLD, "PyTorch before 1.6"),
        (torch_zip(b"x"), "not a pickle"),
    ):
        with pytest.raises(ValueError, match=rf"policy.pth.*{words}"):
            load_sb3(changed(tmp_path, **{"policy.pth": content}))
    with pytest.raises(ValueError, match=r"policy.pth: action_net.weight: is missing; .* none"):
        load_sb3(changed(tmp_path, **{"policy.pth": torch_zip(pickle.dumps({}))}))


def test_wrong_statistics(tmp_path):
    path = DATA / "sac-pendulum.zip"
    with pytest.raises(ValueError, match=r"vecnormalize: mean has shape \(2,\), expected \(3,\)"):
        load_sb3(path, vecnormalize=(np.zeros(2), np.ones(3)))
    with pytest.raises(ValueError, match=r"obs_rms.mean: has shape \(3,\), expected shape \(4,\)"):
        load_sb3(DATA / "a2c-cartpole.zip", vecnormalize=statistics("ppo-arm"))
    with pytest.raises(ValueError, match=r"var must be finite and not negative"):
        load_sb3(path, vecnormalize=(np.zeros(3), [1, 1, -1]))
    with pytest.raises(TypeError, match=r"a path or a pair \(mean, var\), got ndarray"):
        untyped(load_sb3)(path, vecnormalize=np.zeros((2, 3)))
    other = tmp_path / "other.pkl"
    other.write_bytes(pickle.dumps({"mean": 0}))
    with pytest.raises(ValueError, match=r"other.pkl: is not a file of VecNormalize.save: it holds"):
        load_sb3(path, vecnormalize=other)


def test_without_the_suffix_and_with_a_name():
    assert load_sb3(str(DATA / "td3-arm")).name == "td3-arm"
    assert load_sb3(DATA / "td3-arm.zip", name="reach").name == "reach"


def test_a_damaged_file_is_refused_or_read_but_never_fails_otherwise(tmp_path):
    """Bytes are changed at random, in the pickles themselves, so that no checksum notices; see tests/fuzz/sb3.py."""
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
    for attempt in range(80):
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
        except ggpi.FileError as error:
            assert "changed.zip" in str(error)
            outcomes.append("refused")
    assert min(outcomes.count("read"), outcomes.count("refused")) > 8


def test_files_of_torch_alone_are_named(tmp_path):
    new, old = tmp_path / "actor.pt", tmp_path / "actor.pth"
    with zipfile.ZipFile(DATA / "ppo-arm.zip") as archive:
        new.write_bytes(archive.read("policy.pth"))
    old.write_bytes(OLD)
    for path in (new, old):
        with pytest.raises(
            ggpi.FileError, match=rf"{path.name}: is a file of torch.save, .*model.save.*ggpi.policy_from"
        ):
            load_sb3(path)


def test_statistics_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere.pkl; vecnormalize= expects the one that"):
        load_sb3(DATA / "ppo-arm.zip", vecnormalize=tmp_path / "nowhere.pkl")


def test_statistics_that_were_forgotten():
    """Real files: PPO was trained with VecNormalize, A2C without."""
    with pytest.warns(UserWarning, match=r"ppo-arm.zip was trained with VecNormalize .*vecnormalize="):
        load_sb3(DATA / "ppo-arm.zip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_sb3(DATA / "ppo-arm.zip", vecnormalize=DATA / "ppo-arm-vecnormalize.pkl")
        load_sb3(DATA / "a2c-cartpole.zip")
        load_sb3(DATA / "sac-pendulum.zip")
