"""Mutations of files that Stable-Baselines3 wrote: each loads and acts within its space, or raises `FileError`."""

import base64
import io
import json
import pickletools
import sys
import warnings
import zipfile
from pathlib import Path

import campaign
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from campaign import Campaign

from ggpi import load_sb3

DATA = Path(__file__).parents[1] / "data" / "sb3"
ZIPS = sorted(DATA.glob("*.zip"))
FIELDS = ("policy_class", "observation_space", "action_space")
SIZES = (0, 1, 2, 3, 127, 255, 2**15, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
ODD = [
    *(
        None,
        True,
        -1,
        0,
        1.5,
        float("nan"),
        float("inf"),
        10**400,
        "",
        "x" * 5000,
        "\ud800",
        [],
        {},
        [[]] * 50,
    ),
    *({":serialized:": ""}, {":serialized:": 3}, {":serialized:": "gASVAAAAAA=="}, "<class 'torch.nn.Tanh'>"),
]
"""What a field of the JSON becomes."""
CHUNKS = [
    *(
        b"N",
        b"(",
        b"0",
        b"1",
        b"2",
        b"t",
        b"b",
        b"R",
        b"\x81",
        b"a",
        b"e",
        b"u",
        b"s",
        b")",
        b"]",
        b"}",
        b".",
    ),
    *(
        b"\x85",
        b"\x86",
        b"\x87",
        b"\x88",
        b"\x8f",
        b"\x90",
        b"\x91",
        b"\x92",
        b"\x93",
        b"\x94",
        b"\x97",
        b"Q",
    ),
    *(b"\x86\x94h\x00" * 40, b"2\x86" * 60, b"(" * 200, b"]" * 2000 + b"a" * 1999, b"r\xff\xff\xff\x7fh\x00"),
    *(
        b"\x8b\xff\xff\xff\x7f",
        b"\x8a\xff" + b"\x7f" * 255,
        b"L" + b"9" * 6000 + b"L\n",
        b"I99\n",
        b"Vx\n",
        b"S'x'\n",
    ),
    *(
        b"cnumpy\ndtype\n",
        b"cnumpy.core.multiarray\n_reconstruct\n",
        b"ccollections\nOrderedDict\n",
        b"cos\nsystem\n",
    ),
    *(
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ctorch\nFloatStorage\n",
        b"cgym.spaces\nBox\n",
        b"G\x7f\xf8" + b"\0" * 6,
    ),
]
"""Instructions that are put into a pickle."""


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(contents, rng):
    """A zip; now and then with a member too few, twice, under another name, or compressed otherwise."""
    items, buffer = list(contents.items()), io.BytesIO()
    if rng.random() < 0.05:
        items.pop(rng.integers(len(items)))
    if rng.random() < 0.05:
        items.append(items[rng.integers(len(items))])
    if rng.random() < 0.05:
        items[0] = ("x" + mutated(items[0][0].encode(), rng).decode("latin1"), items[0][1])
    methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    method = methods[rng.choice(4, p=[0.45, 0.45, 0.05, 0.05])]
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # of a name that occurs twice
        for name, content in items:
            archive.writestr(name, content)
    return buffer.getvalue()


def mutated(content, rng):
    """A few bytes changed, put in, taken out, or an integer overwritten."""
    content = bytearray(content)
    for _ in range(1 + rng.geometric(0.5)):
        at = int(rng.integers(len(content) + 1))
        kind = rng.integers(6)
        if kind == 0:
            content[at : at + 1] = bytes([rng.integers(256)])
        elif kind == 1 and at < len(content):
            content[at] ^= 1 << rng.integers(8)
        elif kind == 2:
            content[at : at + int(rng.geometric(0.1))] = b""
        elif kind == 3:
            content[at:at] = rng.bytes(rng.geometric(0.2))
        elif kind == 4:
            width = int(rng.choice([1, 2, 4, 8]))
            value = SIZES[rng.integers(len(SIZES))] % 256**width
            content[at : at + width] = value.to_bytes(width, "little")
        elif rng.random() < 0.2:
            del content[at:]
    return bytes(content)


def reprogrammed(content, rng):
    """A pickle with instructions taken out, repeated, exchanged or put in; or with bytes changed."""
    if rng.random() < 0.4:
        return mutated(content, rng)
    starts = [at for _, _, at in pickletools.genops(content)]
    code = [content[a:b] for a, b in zip(starts, [*starts[1:], len(content)], strict=True)]
    for _ in range(rng.geometric(0.5)):
        at, other = rng.integers(len(code), size=2)
        kind = rng.integers(5)
        if kind == 0 and len(code) > 1:
            code.pop(at)
        elif kind == 1:
            code.insert(at, code[other])
        elif kind == 2:
            code[at], code[other] = code[other], code[at]
        elif kind == 3:
            code[at] = mutated(code[at], rng)
        else:
            code.insert(at, CHUNKS[rng.integers(len(CHUNKS))])
    return b"".join(code)


def change_json(contents, rng):
    """A field, or a field of a field, becomes something odd."""
    about = json.loads(contents["data"])
    target = about
    key = str(rng.choice([*FIELDS, "policy_kwargs", "use_sde"]))
    if rng.random() < 0.6 and isinstance(about.get(key), dict) and about[key]:
        target, key = about[key], str(rng.choice([*about[key], "activation_fn", "net_arch"]))
    if rng.random() < 0.1:
        target.pop(key, None)
    else:
        target[key] = ODD[rng.integers(len(ODD))]
    return contents | {"data": json.dumps(about).encode()}


def change_pickle(contents, rng):
    about = json.loads(contents["data"])
    field = str(rng.choice(FIELDS))
    content = reprogrammed(base64.b64decode(about[field][":serialized:"]), rng)
    about[field] = {":serialized:": base64.b64encode(content).decode()}
    return contents | {"data": json.dumps(about).encode()}


def change_tensors(contents, rng):
    inner = members(contents["policy.pth"])
    name = str(rng.choice(list(inner))) if rng.random() < 0.4 else "archive/data.pkl"
    change = reprogrammed if name.endswith("data.pkl") else mutated
    return contents | {"policy.pth": zipped(inner | {name: change(inner[name], rng)}, rng)}


def change_bytes(contents, rng):
    name = str(rng.choice(["data", "policy.pth", "_stable_baselines3_version"]))
    return contents | {name: mutated(contents[name], rng)}


CHANGES = (change_json, change_pickle, change_tensors, change_bytes)


def make(rng, folder):
    """Paths of a policy and its statistics, one of which is changed."""
    source = ZIPS[rng.integers(len(ZIPS))]
    content, statistics = source.read_bytes(), DATA / f"{source.stem}-vecnormalize.pkl"
    path = folder / "changed.zip"
    kind = rng.integers(7)
    if kind == 0 and statistics.exists():
        changed, path = folder / "changed.pkl", source
        changed.write_bytes(reprogrammed(statistics.read_bytes(), rng))
        return path, changed
    if kind == 1:
        path.write_bytes(mutated(content, rng))
    else:
        path.write_bytes(zipped(CHANGES[kind % len(CHANGES)](members(content), rng), rng))
    return path, statistics if statistics.exists() else None


@eqx.filter_jit
def actions(policy, states):
    return jnp.concatenate([policy.mode(states), policy.sample(states, key=jax.random.key(0))])


def check(case):
    """Loads, then acts in states near and far."""
    path, statistics = case
    policy = load_sb3(path, vecnormalize=statistics, name="changed")
    network = getattr(policy.function, "network", policy.function)
    state = np.linspace(-1, 1, len(network.normalise.mean), dtype=np.float32)
    for action in np.asarray(actions(policy, np.stack([0 * state, state, 1e5 * state]))):
        assert np.isfinite(action).all(), f"an action is {action}"
        assert policy.action_space.contains(action), f"{action} is not in {policy.action_space}"
    return "right answer"


def setup():
    for path in ZIPS:
        statistics = DATA / f"{path.stem}-vecnormalize.pkl"
        check((path, statistics if statistics.exists() else None))


if __name__ == "__main__":
    sys.exit(campaign.main(Campaign("sb3", make, check, setup=setup)))
