"""Saved directories whose content is wrong although their digests are right raise `FileError` and name the field."""

import copy
import re

import numpy as np
import pytest

import ggpi
import saved_files
from ggpi.storage.verify import PartError, verify

NAN, INF = {"float": "nan"}, {"float": "inf"}
FIELDS = [
    ("vae-ghms", ("gamma",), 1.0, "γ lies in"),
    ("ghms-2-vae", ("gamma",), "x", "gamma: expected float, got str x"),
    ("ghms-2-vae", ("gamma",), True, "gamma: expected float"),
    ("vae-ghms", ("gamma",), 10**30, "unknown structure"),
    ("vae-ghms", ("gamma",), 0.8, "models of horizons"),
    ("ghms-2-vae", ("alphas",), {"tuple": [2.0]}, "α, the probability of a switch"),
    ("vae-ghms", ("alphas",), {"tuple": [0.5]}, "models of horizons"),
    ("ghms-2-vae", ("policies",), {"tuple": []}, "Frame"),
    ("ghms-2-vae", ("policies", 0), 3, "expected a policy, got a int"),
    ("ghms-2-vae", ("models", 0), {"tuple": [1, 2]}, "models"),
    ("ghms-2-vae", ("models", 0, "latent"), 2, r"models\.0: VAE"),
    ("ghms-2-vae", ("models", 0, "latent"), 10**12, r"models\.0: VAE"),
    ("ghms-2-vae", ("models", 0, "kl_weight"), NAN, r"kl_weight: contains NaN or infinity"),
    ("ghms-2-vae", ("models", 0, "frame", "kept"), {"tuple": [1, 7]}, "increasing choice of 3"),
    ("ghms-2-vae", ("models", 0, "frame", "num_actions"), 4, r"models\.0"),
    ("ghms-2-vae", ("models", 0, "frame", "rotations"), {"tuple": [{"tuple": [0]}]}, "groups of six"),
    ("ghms-2-exact", ("models", 0, 0, "horizon"), 1.5, "γ lies in"),
    ("ghms-2-exact", ("models", 0), {"tuple": []}, "0 models at 0.9, but 1 policies"),
    ("flow-ghms", ("models", 0.9, "layers", 0, "coupling", "kept"), 3, r"models\.0"),
    ("flow-ghms", ("models", 0.9, "layers", 0, "coupling", "interval"), -1.0, "interval"),
    ("linear-policy", ("low",), 2.0, "low is at most high"),
    ("linear-policy", ("name",), 3, "name: expected str"),
    ("linear-policy", ("name",), "\ud800", "name: unknown structure"),
    ("gaussian-policy", ("inputs",), {"tuple": [0]}, "GaussianPolicy"),
    ("gaussian-policy", ("inputs",), {"tuple": [0, -1]}, "must not be negative"),
    ("gaussian-policy", ("scale",), {"tuple": [1.0, INF]}, "scale: contains NaN or infinity"),
    ("gaussian-policy", ("network", "gains"), {"tuple": []}, "GaussianPolicy"),
    ("clipped-policy", ("function", "network", "activation"), "Sine", "activation 'Sine' is not supported"),
    ("clipped-policy", ("function",), None, "function is a NoneType"),
    ("choice-policy", ("num_actions",), 4, "outputs for 4 actions"),
    ("simulator", ("horizon",), 1.0, "γ lies in"),
    ("simulator", ("longest",), 10**12, "starts are not"),
    (
        "policy-bank",
        ("members",),
        {"tuple": [{"tuple": [0, 0]}, {"tuple": [1]}]},
        "must hold each policy once",
    ),
    ("policy-bank", ("arrays", 0, "gain"), None, "gain: expected"),
    ("targets-reward", ("values", "values", "indices"), {"tuple": [0]}, "place has shape"),
    ("target-reward", ("form",), "often", "form: expected"),
    ("state-reward", ("form",), "state_action", "a state_action reward has shape"),
    ("state-reward", ("values",), "x", "no attribute"),
    ("spec", ("relative",), {"tuple": [9]}, "indices 0 to 7"),
    ("values", ("gsps", "gsps", 0, "policies"), {"tuple": [{"float": "nan"}]}, "policies: expected"),
    ("values", ("policies",), {"tuple": []}, "policies are named, there are 0"),
    ("recipes", (0, "decay"), "never", "decay: expected"),
    ("plain", (0.5, 0), {"list": 3}, "unknown structure"),
    ("plain", (0.5, 0), {"array": "inf"}, "unknown structure"),
    ("plain", (3,), {"array": "none", "jax": True}, "there is no array 'none'"),
    ("plain", (0.5, 0), {"dict": [[{"list": []}, 1]]}, "expected distinct keys"),
    (
        "plain",
        (0.5, 0),
        {"class": "ggpi.ghm.learned:AbstractGHM", "fields": {"frame": 1}},
        "is not a class of",
    ),
    (
        "plain",
        (0.5, 0),
        {"class": "ggpi.nowhere:Thing", "fields": {}},
        "'ggpi.nowhere:Thing' is not a class of this version",
    ),
    ("plain", (0.5, 0), {"class": "ggpi.data.spec:StateSpec", "fields": {}}, "has fields .*names"),
]


@pytest.mark.parametrize(("kind", "path", "value", "words"), FIELDS)
def test_a_changed_field_is_named(tmp_path, kind, path, value, words):
    arrays, index = saved_files.read(saved_files.SAVED / kind)
    holder, last = saved_files.at(index["about"]["object"], path[:-1]), path[-1]
    match holder:
        case {"fields": fields}:
            fields[last] = value
        case {"dict": items}:
            next(item for item in items if item[0] == last)[1] = value
        case {"tuple": parts} | {"list": parts}:
            parts[last] = value
    saved_files.write(tmp_path, arrays, index)
    with pytest.raises(ggpi.FileError, match=words) as caught:
        ggpi.load(tmp_path)
    assert str(tmp_path) in str(caught.value) and len(str(caught.value)) < 600


ARRAYS = [
    ("ghms-2-vae", "context", lambda a: a[..., :-1]),
    ("ghms-2-vae", "context", lambda a: a[:1]),
    ("ghms-2-vae", "context", lambda a: a.astype(int)),
    ("ghms-2-vae", "context", lambda a: np.where(a == a.max(), np.nan, a)),
    ("ghms-2-vae", "frame.target_scale", lambda a: -a),
    ("flow-ghms", "norm.variance", lambda a: a - 5),
    ("linear-policy", "gain", lambda a: a[None]),
    ("linear-policy", "bias", lambda a: a[:1]),
    ("mixed-policy", "probabilities", lambda a: a - 0.5),
    ("tabular-policy", "pi", lambda a: a * 2),
    ("tabular-policy", "pi", lambda a: a.astype(np.float32)),
    ("directed-policies", "0.direction", lambda a: a + 4),
    ("mdp", "P", lambda a: a[:2]),
    ("alias-table", "alias", lambda a: a + 1),
    ("simulator", "successors", lambda a: a + 7),
    ("learned-reward", "state_mean", lambda a: a[:2]),
    ("target-reward", "radius", lambda a: 0 * a),
    ("features-reward", "weights", lambda a: a * np.inf),
    ("transitions", "state", lambda a: a[:3]),
    ("exact-ghms", "policies.0.pi", lambda a: a[:2]),
]


@pytest.mark.parametrize(("kind", "end", "change"), ARRAYS)
def test_a_changed_array_is_noticed(tmp_path, kind, end, change):
    arrays, index = saved_files.read(saved_files.SAVED / kind)
    name = next(name for name in arrays if name.endswith(end))
    arrays[name] = change(arrays[name])
    saved_files.write(tmp_path, arrays, index)
    with pytest.raises(ggpi.FileError, match=re.escape(str(tmp_path))):
        ggpi.load(tmp_path)


@pytest.mark.parametrize("depth", [300, 5000])
def test_endless_nesting(tmp_path, depth):
    arrays, _index = saved_files.read(saved_files.SAVED / "plain")
    saved_files.write(tmp_path, arrays, {"about": {"object": "HERE"}}, first=True)
    path = tmp_path / "about.json"
    path.write_text(path.read_text().replace('"HERE"', '{"list": [' * depth + "]}" * depth))
    with pytest.raises(ggpi.FileError, match="nested too deeply"):
        ggpi.load(tmp_path)


def test_what_fits_is_left_alone():
    policy = ggpi.load(saved_files.SAVED / "linear-policy")
    verify(policy)
    wrong = copy.copy(policy)
    object.__setattr__(wrong, "name", 3)
    with pytest.raises(PartError, match=r"policies\.1\.name: expected str, got int 3"):
        verify({"policies": (policy, wrong)})
