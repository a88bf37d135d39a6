"""Mutations of saved directories: each loads as something that works, or raises `FileError`.

bytes      of a directory with digests: every change of any byte is an error
text       of `about.json` in the first format, which has no digest
structure  of the saved object, with digests that are right
arrays     their shapes, types, numbers and headers, with digests that are right
"""

import copy
import json
import sys
import tempfile
import warnings
from pathlib import Path

import campaign
import jax
import jax.numpy as jnp
import numpy as np
from campaign import Campaign

sys.path.insert(0, str(Path(__file__).parents[1]))
import ggpi
import saved_files
from ggpi.data import Transitions
from ggpi.evaluation.values import QValues
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.policies.symmetric import OGBenchWalker
from ggpi.rewards import Each, Reward
from ggpi.storage.objects import Foreign

KINDS = sorted(path.parent.name for path in saved_files.SAVED.glob("*/about.json"))
WEIGHTS = np.array([0.3 if "ghms" in kind else 1.0 for kind in KINDS])
"""Models take ten times as long to trace as policies."""
READ = {kind: saved_files.read(saved_files.SAVED / kind) for kind in KINDS}
NUMBERS = [0, 1, -1, 2, 3, 7, 0.0, 0.5, 0.9, 1.0, -2.5, 1e-300, 1e300, 2**31, 2**62, -(2**63), 10**30]
ODD = [
    *NUMBERS,
    *(None, True, "", "x", "x" * 3000, "\ud800", [], {}, [[]] * 20, {"a": 1}, [1, [2, [3]]]),
    *(
        {"float": "nan"},
        {"float": "inf"},
        {"float": "1e999"},
        {"tuple": []},
        {"list": [1]},
        {"tuple": [0.5, 0.5]},
    ),
    *(
        {"dict": []},
        {"dict": [[1]]},
        {"dict": [[{"list": []}, 1]]},
        {"foreign": ["a", "b"]},
        {"foreign": [1, 2]},
    ),
    *({"array": "none", "jax": True}, {"array": 3, "jax": 4}, {"class": "os:system", "fields": {}}),
    *(
        {"class": "ggpi.storage.arrays:save", "fields": {}},
        {"class": "ggpi.ghm.learned:AbstractGHM", "fields": {"frame": 1}},
    ),
]
"""What a part of a structure becomes."""


def make(rng, folder):
    kind = KINDS[rng.choice(len(KINDS), p=WEIGHTS / WEIGHTS.sum())]
    how = rng.choice(["bytes", "text", "structure", "arrays"], p=[0.4, 0.2, 0.25, 0.15])
    arrays, index = READ[kind]
    if how in ("bytes", "text"):
        saved_files.write(folder, arrays, index, first=how == "text")
        files = sorted(folder.iterdir())  # about.json is the first
        path = files[0] if how == "text" else files[rng.integers(len(files))]
        before = path.read_bytes()
        path.write_bytes(mutated(rng, before))
        return folder, kind, how, path.read_bytes() != before
    index, arrays, content = copy.deepcopy(index), dict(arrays), None
    if how == "structure":
        for _ in range(rng.integers(1, 3)):
            change_structure(rng, index["about"])
    else:
        content = change_arrays(rng, arrays)
    saved_files.write(folder, arrays, index, content=content)
    return folder, kind, how, True


def mutated(rng, content):
    """Some bytes are flipped, replaced, cut out, put in or cut off."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, end = sorted(rng.integers(len(content) + 1, size=2))
        match rng.integers(6):
            case 0 | 1 if len(content):
                content[at - 1] ^= 1 << rng.integers(8)
            case 2 if len(content):
                content[at - 1] = rng.choice(list(b'0123456789-+.eE"{}[],: \n\\unltrfaNI'))
            case 3:
                del content[at : min(end, at + 20)]
            case 4:
                content[at:at] = content[at : min(end, at + 20)]
            case 5 if rng.random() < 0.3:
                del content[at:]
    return bytes(content)


def nodes(value, found):
    """All holders and keys of a structure."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            found.append((value, key))
            nodes(part, found)
    return found


def change_structure(rng, about):
    """Another value, number, type or place for one part."""
    places = nodes(about, [])
    if not places:
        return
    holder, key = places[rng.integers(len(places))]
    match rng.integers(6):
        case 0 | 1:
            holder[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])
        case 2:
            other, name = places[rng.integers(len(places))]
            holder[key] = copy.deepcopy(other[name])
        case 3:
            another = nodes(READ[KINDS[rng.integers(len(KINDS))]][1]["about"], [])
            other, name = another[rng.integers(len(another))]
            holder[key] = copy.deepcopy(other[name])
        case 4:
            del holder[key]
        case 5:
            numbers = [(h, k) for h, k in places if isinstance(h[k], int | float)]
            if numbers:
                holder, key = numbers[rng.integers(len(numbers))]
                holder[key] = NUMBERS[rng.integers(len(NUMBERS))]


def change_arrays(rng, arrays):
    """Another shape, type or number of one array; or the bytes of a file whose header was changed."""
    if not arrays:
        return b""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    axis = rng.integers(array.ndim) if array.ndim else None
    match rng.integers(12):
        case 0 if axis is not None:
            arrays[name] = np.delete(array, 0, axis) if array.shape[axis] else array
        case 1 if axis is not None:
            arrays[name] = np.concatenate([array, array], axis)
        case 2:
            arrays[name] = array[None]
        case 3:
            arrays[name] = array.ravel()
        case 4:
            arrays[name] = array.T
        case 5:
            kinds = ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "?"]
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(kinds[rng.integers(len(kinds))])
        case 6 if array.size and array.dtype.kind == "f":
            changed = array.copy()
            changed.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 100.0])
            arrays[name] = changed
        case 7 if array.size and array.dtype.kind in "iu":
            changed = array.copy()
            changed.flat[rng.integers(array.size)] = rng.choice([-1, 0, 5, 100, 2**31 - 1])
            arrays[name] = changed
        case 8:
            arrays[name] = (
                -array if array.dtype.kind in "if" else ~array if array.dtype.kind == "b" else array
            )
        case 9:
            del arrays[name]
        case 10:
            other = sorted(arrays)[rng.integers(len(arrays))]
            arrays[name], arrays[other] = arrays[other], arrays[name]
        case 11:
            import safetensors.numpy

            whole = safetensors.numpy.save(
                {key: np.asarray(value, order="C") for key, value in arrays.items()}
            )
            return mutated(rng, whole[: 8 + int.from_bytes(whole[:8], "little")]) + whole[-64:]
    return None


def check(case):
    folder, kind, how, is_changed = case
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = ggpi.load(folder)
        assert how != "bytes" or not is_changed, f"a change of {kind} was not noticed"
        use(value, is_finite=how == "text" and not is_changed)
    return f"{how} loads"


def use(value, is_finite, depth=0):
    """Calls what can be called: nothing fails, and shapes are right."""
    match value:
        case tuple() | list() if depth < 3:
            for part in value[:4]:
                use(part, is_finite, depth + 1)
        case GHMs():
            for k, policy in enumerate(value.policies[:2]):
                use(policy, is_finite)
                for alpha in (None, *value.alphas[:1]):
                    use(value.segment(k, alpha), is_finite)
        case AbstractGHM():
            size, (shape, kind) = value.frame.state_size, value.frame.action_form
            action = jnp.zeros(shape) if kind == "f" else jnp.zeros((), int)
            right(value.push(jnp.zeros(size), action, jnp.zeros(value.noise_size)), (size,), is_finite)
        case ExactGHM():
            right(value.dense().sum(axis=2), (value.mdp.num_states, value.mdp.num_actions), True)
        case ggpi.TabularPolicy():
            right(value.mode(jnp.arange(len(value.pi))), (len(value.pi),), True)
        case Reward() if callable(value.values) and not isinstance(value.values, Each):
            jax.eval_shape(value.values, *reward_inputs(value))
        case QValues():
            assert len(value.array) == len(value.gsps)
        case Transitions():
            assert len(value[:1]) <= 1
        case Foreign():
            assert f"{value.name} {value.kind}"
        case _ if hasattr(value, "mode") and hasattr(value, "name"):
            state = jnp.ones(state_size(value))  # an orientation is no row of zeros
            right(value.mode(state), None, is_finite)
    assert repr(type(value))


def right(array, shape, is_finite):
    assert shape is None or np.shape(array) == shape, (np.shape(array), shape)
    assert not is_finite or np.isfinite(array).all()


def state_size(policy):
    function = getattr(policy, "function", None)
    if function is not None:
        return len(getattr(function, "network", function).normalise.mean)
    if hasattr(policy, "gain"):
        return policy.gain.shape[1]
    if hasattr(policy, "inputs"):
        return 1 + max(policy.inputs)
    return 29 if isinstance(policy, OGBenchWalker) else 35


def reward_inputs(reward):
    values = reward.values
    size = len(values.state_mean) if hasattr(values, "state_mean") else 1 + max(values.indices)
    state = jax.ShapeDtypeStruct((size,), jnp.float32)
    if reward.form != "state_action":
        return (state,)
    number = getattr(values, "num_actions", None)
    return state, jax.ShapeDtypeStruct(
        (2,) if number is None else (), jnp.float32 if number is None else jnp.int32
    )


def setup():
    """Every kind is used once, which compiles the operations that all cases need."""
    for kind in KINDS:
        arrays, index = READ[kind]
        with tempfile.TemporaryDirectory() as folder:
            saved_files.write(Path(folder), arrays, json.loads(json.dumps(index)))
            use(ggpi.load(folder), True)


if __name__ == "__main__":
    sys.exit(campaign.main(Campaign("saved", make, check, setup=setup)))
