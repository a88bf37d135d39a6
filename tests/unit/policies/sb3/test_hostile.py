"""Files of Stable-Baselines3 that are made to exhaust memory or time, or to change the process."""

import base64
import contextlib
import io
import json
import pickle
import struct
import tracemalloc
import zipfile
import zlib

import jax
import numpy as np
import pytest
from gymnasium.spaces import Box

from ggpi import FileError, load_sb3
from ggpi.policies import networks
from ggpi.policies.sb3 import archives, pickled_arrays, pickles, torch_files
from ggpi.policies.sb3.pickles import Name, Record, read_pickle
from sb3_files import DATA, blob, changed, changed_data, statistics

HUGE = 2**40


def text(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


def unicode(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def name(module, attribute):
    return text(module) + text(attribute) + b"\x93"


def program(code):
    return {":serialized:": base64.b64encode(b"\x80\x05" + code + b".").decode()}


def stored(members, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for member, content in members:
            archive.writestr(member, content)
    return buffer.getvalue()


def tensor(shape, stride, offset=0, size=4, key="0"):
    """A pickle of one tensor log_std in a storage of some floats."""

    def number(n):
        return b"\x8a\x09" + n.to_bytes(9, "little")

    def sizes(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = (
        b"("
        + text("storage")
        + name("torch", "FloatStorage")
        + unicode(key)
        + text("cpu")
        + number(size)
        + b"tQ"
    )
    arguments = b"(" + storage + number(offset) + sizes(shape) + sizes(stride) + b"\x89}t"
    code = b"}" + text("log_std") + name("torch._utils", "_rebuild_tensor_v2") + arguments + b"Rs"
    return stored([("archive/data.pkl", b"\x80\x02" + code + b"."), ("archive/data/0", bytes(16))])


@contextlib.contextmanager
def at_most(memory):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()


DTYPE = name("numpy", "dtype") + text("f4") + b"\x89\x88\x87R"
FROM_BUFFER = name("numpy._core.numeric", "_frombuffer")
LONG = b"\x8a\xff" + b"\x7f" * 255
NESTED = b"]" * 24_000 + b"a" * 23_999
DOUBLED = b")q\x000" + b"h\x00h\x00\x86q\x000" * 200 + b"h\x00"
"""Pairs of pairs of pairs …: 2²⁰⁰ leaves for whoever walks along them."""


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (b"Nr\xff\xff\xff\x7f", "NoneType is not supported"),
        (b"\x8b\xff\xff\xff\x7fxx", "not a pickle"),
        (b"\x8b\x08\0\0\0" + bytes(8), "the instruction LONG4"),
        (b"L" + b"9" * 100_000 + b"L\n", "not a pickle"),
        (b"\x8e" + struct.pack("<Q", HUGE) + b"x", "not a pickle"),
        (b"\x8d" + struct.pack("<Q", HUGE) + b"x", "not a pickle"),
        (b"\x96" + struct.pack("<Q", HUGE) + b"x", "not a pickle"),
        (b"\x95" + struct.pack("<Q", HUGE) + NESTED, "list is not supported"),
        (NESTED, "list is not supported"),
        (b"(" * 40_000, "lacks its arguments"),
        (DOUBLED, "tuple is not supported"),
        (b"}" + DOUBLED + b"Ns", "a dictionary has the key"),
        (b"}" + LONG + b"Ns", "a dictionary has the key"),
        (b"N0" * 26_000 + b"N", "more than 50000 instructions"),
        (name("numpy", "dtype") + text("V999999999") + b"\x85R", "only numbers are supported"),
        (name("numpy", "dtype") + DOUBLED + b"\x85R", "only numbers are supported"),
        (
            FROM_BUFFER + b"(C\x04aaaa" + DTYPE + LONG + b"\x85" + text("C") + b"tR",
            "array of shape .* with 1 numbers",
        ),
        (FROM_BUFFER + b"(C\x04aaaa" + DTYPE + DOUBLED + text("C") + b"tR", "an array with shape"),
        (name("numpy._core.multiarray", "_reconstruct") + b")R(" + b"N" * 5 + b"tb", "bytes and a type"),
        (b"Nh\x07", "did not store"),
    ],
)
def test_bombs_in_pickles(code, problem, tmp_path):
    with pytest.raises(FileError, match=rf"changed.zip: data.action_space: .*{problem}") as raised:
        load_sb3(changed_data(tmp_path, action_space=program(code)))
    assert len(str(raised.value)) < 1500
    assert (raised.value.field, raised.value.path) == ("data.action_space", str(tmp_path / "changed.zip"))


@pytest.mark.parametrize(
    ("pth", "problem"),
    [
        (tensor((HUGE,), (0,)), "in a storage of 4 numbers"),
        (tensor((2, 2), (0, 1)), None),
        (tensor((2, 2), (2, 2)), "in a storage of 4 numbers"),
        (tensor((2,), (1,), offset=3), "in a storage of 4 numbers"),
        (tensor((2,), (1,), offset=2**70), "in a storage of 4 numbers"),
        (tensor((2**33, 2**33), (0, 0)), "in a storage of 4 numbers"),
        (tensor((1,) * 70, (1,) * 70), "an array with shape"),
        (tensor((0,), (1,)), "is empty"),
        (tensor((2,), (1, 1)), "not a pickle"),
        (tensor((HUGE,), (1,), size=HUGE), "tensors of more than"),
        (tensor((5,), (1,), size=5), "16 bytes, expected 5 numbers"),
    ],
)
def test_tensors_lie_in_their_storage(pth, problem, tmp_path):
    with pytest.raises(FileError, match=rf"changed.zip: policy.pth: .*{problem or 'action_net.weight'}"):
        load_sb3(changed(tmp_path, **{"policy.pth": pth}))


def test_zip_bombs(tmp_path, monkeypatch):
    """Compressed a thousandfold, in the zip or in the zip inside; and with a header that lies about it."""
    for module, budget in ((torch_files, 2**20), (pickles, 2**20)):
        monkeypatch.setattr(module, "BYTES", budget)
    bomb = bytes(2**24)
    outer = changed(tmp_path, **{"policy.pth": stored([("archive/data.pkl", b"x")])})
    with zipfile.ZipFile(outer) as archive:
        others = [(n, archive.read(n)) for n in archive.namelist() if n != "policy.pth"]
    inner = stored([("archive/data.pkl", bomb)], zipfile.ZIP_DEFLATED)
    lying = bytearray(stored([*others, ("policy.pth", bomb)], zipfile.ZIP_DEFLATED))
    at = lying.rindex(b"PK\x01\x02") + 24
    assert lying[at : at + 4] == struct.pack("<L", len(bomb))
    lying[at : at + 4] = struct.pack("<L", 1000)
    for content, problem in (
        (
            stored([*others, ("policy.pth", bomb)], zipfile.ZIP_DEFLATED),
            "policy.pth: is larger than 1048576 bytes",
        ),
        (stored([*others, ("policy.pth", inner)]), "archive/data.pkl: is larger than 1048576 bytes"),
        (bytes(lying), "policy.pth: damaged"),
    ):
        outer.write_bytes(content)
        with at_most(2**23), pytest.raises(FileError, match=problem):
            load_sb3(outer)


def test_only_needed_members_are_read(tmp_path):
    """What else is in the zip may be as large as it likes."""
    path = changed(tmp_path, **{"replay.pkl": b"", "policy.optimizer.pth": bytes(2**26)})
    with at_most(2**24):
        load_sb3(path)


def test_budgets_of_json_and_of_the_list_of_members(tmp_path, monkeypatch):
    path = changed(tmp_path, data=b"[" * 100_000)
    with pytest.raises(FileError, match=r"data: damaged or not JSON \(RecursionError"):
        load_sb3(path)
    with pytest.raises(FileError, match=r"data: damaged or not JSON"):
        load_sb3(changed(tmp_path, data=b"9" * 10_000))
    with pytest.raises(FileError, match=r"data: is larger than 16777216 bytes"):
        load_sb3(changed(tmp_path, data=b" " * (2**24 + 1)))
    monkeypatch.setattr(archives, "PIECE", 10_000)
    with pytest.raises(FileError, match=r"the list of members is longer than 10000 bytes"):
        load_sb3(changed(tmp_path, **{f"member-{i}": b"" for i in range(300)}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_strange_zips(tmp_path):
    path = tmp_path / "strange.zip"
    with zipfile.ZipFile(DATA / "ppo-arm.zip") as archive:
        items = [(n, archive.read(n)) for n in archive.namelist()]
    path.write_bytes(stored([*items, items[0]]))
    with pytest.raises(FileError, match=r"strange.zip: the zip has 2 members called 'data'"):
        load_sb3(path)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path.write_bytes(stored(items, method))
        with pytest.raises(FileError, match=r"is encrypted, or not compressed with deflate"):
            load_sb3(path)
    encrypted = bytearray(stored(items))
    for signature, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        begin = -1
        while (begin := encrypted.find(signature, begin + 1)) >= 0:
            encrypted[begin + at] |= 1
    path.write_bytes(encrypted)
    with pytest.raises(FileError, match=r"_stable_baselines3_version: is encrypted"):
        load_sb3(path)
    with pytest.raises(FileError, match=r"expected a zip file"):
        load_sb3(tmp_path)
    with pytest.raises(FileError, match=r"expected a regular file"):
        load_sb3(DATA / "ppo-arm.zip", vecnormalize=tmp_path)


def test_errors_of_libraries_are_converted_but_not_of_the_machine():
    for error in (
        zlib.error("x"),
        KeyError("x"),
        RecursionError("x"),
        UnicodeDecodeError("utf8", b"x", 0, 1, "x"),
    ):
        with (
            pytest.raises(FileError, match=r"some.zip: field: .*x"),
            archives.damaged("some.zip", "field", ""),
        ):
            raise error
    for error in (MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(error)), archives.damaged("some.zip", "field", ""):
            raise error


@pytest.mark.parametrize(
    "target",
    [
        name("numpy._core.multiarray", "scalar"),
        name("numpy", "dtype"),
        name("gymnasium.spaces.box", "Box"),
        name("stable_baselines3.common.policies", "ActorCriticPolicy"),
        b"N",
        b"]",
        text("x"),
    ],
)
def test_no_file_changes_the_process(target, tmp_path):
    """BUILD sets attributes of what is on the stack: that must be nothing that outlives the file."""
    state = b"}" + text("__defaults__") + b")s" + b"}" + text("get") + b"Ns\x86"
    before = {module: dict(vars(module)) for module in (pickles, pickled_arrays)}
    kinds = {kind: dict(vars(kind)) for kind in (Record, Name, pickled_arrays.Array, pickled_arrays.Dtype)}
    with pytest.raises(FileError, match=r"it changes the state of"):
        load_sb3(changed_data(tmp_path, action_space=program(target + state + b"b")))
    assert {module: dict(vars(module)) for module in before} == before
    assert {kind: dict(vars(kind)) for kind in kinds} == kinds


def test_records_of_one_file_are_not_those_of_another():
    code = base64.b64decode(program(name("gym", "Box") + b")\x81}" + text("low") + b"Nsb")[":serialized:"])
    first = read_pickle(code, "a", None, lambda _: True)
    first.state["low"] = 3
    again = read_pickle(code, "a", None, lambda _: True)
    assert (again.state, first.name, repr(again)) == ({"low": None}, "Box", "<gym.Box>")


def box(**state):
    """A Box as Gymnasium pickles it, with parts of its state replaced."""
    space = Box(np.float32([-1, -3]), np.float32([2, 0.5]))
    space.__dict__.update(state)
    return blob(space)


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"low": np.float32([np.nan, -3])}, "low contains NaN"),
        ({"high": np.float32([2, np.nan])}, "high contains NaN"),
        ({"low": np.float32([3, -3])}, "lower bounds above upper bounds"),
        ({"low": np.float32([-1])}, "1 lower and 2 upper bounds"),
        ({"_shape": (3,)}, r"2 lower and 2 upper bounds for shape \(3,\)"),
        ({"high": np.float32([np.inf, np.inf]), "low": np.float32([0, np.inf])}, "no finite action"),
        ({"low": None}, "low is None, expected an array"),
        ({"low": [-1.0, -3.0]}, "expected an array"),
        ({"low": np.zeros((0,)), "high": np.zeros((0,))}, r"shape \(0,\), only vectors"),
    ],
)
def test_bounds_are_checked(state, problem, tmp_path):
    with pytest.raises(FileError, match=rf"data.action_space: .*{problem}"):
        load_sb3(changed_data(tmp_path, action_space=box(**state)))


def test_bounds_that_policies_scale_by_are_finite(tmp_path):
    wide = box(low=np.float32([-np.inf, -3]))
    load_sb3(changed_data(tmp_path, action_space=wide))
    with pytest.raises(
        FileError, match=r"data.action_space: has bounds that are not finite, but a TD3Policy"
    ):
        load_sb3(changed_data(tmp_path, "td3-arm", action_space=wide))
    with pytest.raises(FileError, match=r"policy.pth: has 2 outputs, but data.action_space needs 3"):
        load_sb3(changed_data(tmp_path, "dqn-cartpole", action_space=blob(Box(-1, 1, (3,)))))
    with pytest.raises(FileError, match=r"data.action_space: is a Box, but a DQNPolicy has Discrete actions"):
        load_sb3(changed_data(tmp_path, "dqn-cartpole", action_space=blob(Box(-1, 1, (2,)))))


def changed_statistics(tmp_path, old, new):
    content = statistics("ppo-arm").read_bytes()
    assert content.count(old) == 1
    path = tmp_path / "stats.pkl"
    path.write_bytes(content.replace(old, new))
    return path


def double(value):
    return b"G" + struct.pack(">d", value)


@pytest.mark.parametrize(
    ("field", "old", "new", "problem"),
    [
        ("epsilon", 1e-8, double(np.nan), "epsilon must be finite and not negative"),
        ("epsilon", 1e-8, double(-1.0), "epsilon must be finite and not negative"),
        ("epsilon", 1e-8, double(np.inf), "epsilon must be finite and not negative"),
        ("epsilon", 1e-8, text("x"), "epsilon: is 'x', expected a number"),
        ("epsilon", 1e-8, LONG, "epsilon: .*, expected a number"),
        ("clip_obs", 2.0, double(np.nan), "clip_obs must be finite and positive, or infinite"),
        ("clip_obs", 2.0, double(0.0), "clip_obs must be finite and positive, or infinite"),
        ("clip_obs", 2.0, double(-3.0), "clip_obs must be finite and positive, or infinite"),
        ("clip_obs", 2.0, b"]", "clip_obs: .*, expected a number"),
        ("obs_rms", None, b"", "obs_rms: is a NoneType"),
        ("mean", None, b"", "obs_rms.mean: None, expected shape \\(3,\\)"),
    ],
)
def test_statistics_are_checked(field, old, new, problem, tmp_path):
    if old is None:
        path = changed_statistics(tmp_path, text(field) + b"\x94", text("x" * len(field)) + b"\x94")
    else:
        path = changed_statistics(tmp_path, text(field) + b"\x94" + double(old), text(field) + b"\x94" + new)
    with pytest.raises(FileError, match=rf"stats.pkl: {problem}"):
        load_sb3(DATA / "ppo-arm.zip", vecnormalize=path)


def test_moments_are_checked():
    path = DATA / "sac-pendulum.zip"
    for pair, problem in (
        (([0, 0, np.nan], [1, 1, 1]), "mean must be finite"),
        (([0, 0, 1e38], [1, 1, 1]), "mean must be finite"),
        (([0, 0, 0], [1, 1, -1]), "var must be finite and not negative"),
        (([0, 0, 0], [1, 1, np.inf]), "var must be finite and not negative"),
    ):
        with pytest.raises(ValueError, match=problem):
            load_sb3(path, vecnormalize=pair)
    with pytest.raises(ValueError, match=r"var \+ epsilon must be at least 1e-30"):
        networks.normaliser(np.zeros(1), np.zeros(1), 0.0)


def changed_weight(tmp_path, value, member="archive/data/0"):
    """The arm's policy with the first number of a storage replaced."""
    with zipfile.ZipFile(DATA / "ppo-arm.zip") as archive:
        content = archive.read("policy.pth")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inner = {n: archive.read(n) for n in archive.namelist()}
    inner[member] = struct.pack("<f", value) + inner[member][4:]
    return changed(tmp_path, **{"policy.pth": stored(inner.items())})


def test_weights_are_checked(tmp_path):
    """Storage 0 is log_std, 1 the first weights."""
    for value, problem in (
        (np.nan, "not finite"),
        (np.inf, "not finite"),
        (200.0, "is 200, whose exponential overflows"),
    ):
        with pytest.raises(FileError, match=rf"policy.pth: log_std: .*{problem}"):
            load_sb3(changed_weight(tmp_path, value))
    with pytest.raises(
        FileError, match=r"policy.pth: has weights so large that states up to 1e\+06 may overflow"
    ):
        load_sb3(changed_weight(tmp_path, 3e37, "archive/data/1"))
    policy = load_sb3(changed_weight(tmp_path, 1e15, "archive/data/1"))
    state = np.float32([1e6, -1e6, 1e6])
    for action in (policy.mode(state), policy.sample(state, key=jax.random.key(0))):
        assert policy.action_space.contains(np.asarray(action))


def test_the_largest_output_bounds_what_networks_give():
    rng = np.random.default_rng(0)
    for activation in networks.ACTIVATIONS:
        layers = [rng.normal(size=shape).astype(np.float32) * 3 for shape in ((4, 3), (4, 4), (2, 4))]
        biases = tuple(jax.numpy.asarray(rng.normal(size=len(w)), "float32") for w in layers)
        normalise = networks.normaliser(rng.normal(size=3), rng.random(3), 1e-8, 50.0)
        network = networks.Network(normalise, tuple(map(jax.numpy.asarray, layers)), biases, (), activation)
        bound = networks.largest_output(network, 100.0)
        states = rng.uniform(-100, 100, size=(200, 3)).astype(np.float32)
        assert abs(jax.vmap(network)(states)).max() <= bound < 1e9


def test_policy_kwargs_of_other_types(tmp_path):
    for value, problem in (([1], "expected an object"), ("x", "expected an object")):
        with pytest.raises(FileError, match=rf"data.policy_kwargs: .*{problem}"):
            load_sb3(changed_data(tmp_path, policy_kwargs=value))
    with pytest.raises(FileError, match=r"data.policy_kwargs.activation_fn: \[") as raised:
        load_sb3(changed_data(tmp_path, policy_kwargs={"activation_fn": ["x" * 10_000] * 10}))
    assert len(str(raised.value)) < 1500
    nested = json.loads("[" * 500 + "]" * 500)
    with pytest.raises(FileError, match=r"features_extractor_class: is \[\[\["):
        load_sb3(changed_data(tmp_path, policy_kwargs={"features_extractor_class": nested}))


def test_what_pickles_hold_is_read():
    value = {
        "a": (1, 2.5, -3, 2**70, None, True),
        "b": [b"x", "é" * 300],
        "c": ((1, 2, 3, 4), {}),
        "d": frozenset([1]),
    }
    for protocol in (4, 5):
        read = read_pickle(pickle.dumps(value, protocol), "some.pkl", None, lambda _: False)
        assert read == value | {"d": (1,)}
    for order in ("C", "F"):
        for dtype in ("<f4", ">f8", "i2", "b1"):
            array = np.asarray(np.arange(6).reshape(2, 3), dtype, order=order)
            for protocol in (4, 5):
                read = read_pickle(pickle.dumps({"x": array}, protocol), "some.pkl", None, lambda _: False)
                np.testing.assert_array_equal(read["x"].values, array)
                assert read["x"].values.dtype == array.dtype


def test_long_names_do_not_make_long_messages(tmp_path):
    long = "x" * 60_000
    nameless = stored([(f"{long}/data.pkl", b"x")])
    stranger = b"}" + unicode(long) + b"Ns"
    for parts, problem in (
        ({"policy.pth": nameless}, "not a pickle"),
        ({"policy.pth": stored([("archive/data.pkl", b"\x80\x02" + stranger + b".")])}, "not a state_dict"),
        ({long: b"", "data": None}, "no such member"),
        ({"policy.pth": tensor((1,), (1,), key=long)}, "without a short name"),
        ({"_stable_baselines3_version": b"9" * 900}, "versions 1 and 2"),
    ):
        with pytest.raises(FileError, match=problem) as raised:
            load_sb3(changed(tmp_path, **parts))
        assert len(str(raised.value)) < 1500
