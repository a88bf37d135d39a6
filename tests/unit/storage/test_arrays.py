import hashlib
import json
import os

import numpy as np
import pytest

from ggpi import FileError
from ggpi.storage import arrays as io

ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(10)[::3],
    "swapped": np.arange(3, dtype=">f8"),
    "scalar": np.float32(2.5),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 4), np.int32),
    "half": np.ones(2, np.float16),
}


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_what_is_saved_comes_back(tmp_path):
    io.save_arrays(tmp_path / "model", ARRAYS, {"gamma": 0.9, "names": ["links", "größer"]})
    arrays, about = io.load_arrays(tmp_path / "model")
    assert about == {"gamma": 0.9, "names": ["links", "größer"]}
    assert arrays.keys() == ARRAYS.keys()
    for name, expected in ARRAYS.items():
        assert arrays[name].shape == np.shape(expected)
        assert arrays[name].dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(arrays[name], expected)


def test_a_second_save_replaces_the_first(tmp_path):
    io.save_arrays(tmp_path, {"a": np.zeros(2)}, {"version": 1})
    io.save_arrays(tmp_path, {"b": np.ones(3)}, {"version": 2})
    arrays, about = io.load_arrays(tmp_path)
    assert list(arrays) == ["b"] and about == {"version": 2}
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize(
    "arrays, about", [({"a": np.array([{}])}, {}), ({"a": np.zeros(2)}, {"x": object()})]
)
def test_a_refused_save_leaves_the_old_one(tmp_path, arrays, about):
    io.save_arrays(tmp_path, {"a": np.zeros(2)}, {"version": 1})
    before = names(tmp_path)
    with pytest.raises(ValueError, match="object"):
        io.save_arrays(tmp_path, arrays, about)
    assert names(tmp_path) == before
    assert io.load_arrays(tmp_path)[1] == {"version": 1}


def test_a_failed_write_leaves_nothing_aside(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(KeyboardInterrupt), io.replacing(tmp_path / "file") as aside:
        aside.write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_damage_is_named(tmp_path):
    io.save_arrays(tmp_path, ARRAYS)
    (path,) = tmp_path.glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match=f"{path.name}: is damaged"):
        io.load_arrays(tmp_path)
    path.unlink()
    with pytest.raises(FileError, match=f"about.json: arrays: there is no file {path.name}"):
        io.load_arrays(tmp_path)


def test_every_changed_bit_of_the_index_is_noticed(tmp_path):
    io.save_arrays(tmp_path, {"a": np.arange(3)}, {"alpha": 0.1, "größer": [1, None]})
    path = tmp_path / "about.json"
    content = path.read_bytes()
    for i in range(8 * len(content)):
        changed = bytearray(content)
        changed[i // 8] ^= 1 << i % 8
        path.write_bytes(changed)
        with pytest.raises(FileError, match=r"about\.json"):
            io.load_arrays(tmp_path)


def test_a_digest_that_was_taken_away_is_missed(tmp_path):
    io.save_arrays(tmp_path, {"a": np.arange(3)})
    path = tmp_path / "about.json"
    index = json.loads(path.read_text())
    first = index | {"format": "ggpi arrays 1"}
    for changed in ({k: v for k, v in index.items() if k != "digest"}, first, index):
        path.write_text(json.dumps(changed))  # the last has other bytes: no line breaks
        with pytest.raises(FileError, match=r"about\.json"):
            io.load_arrays(tmp_path)
    del first["digest"]
    path.write_text(json.dumps(first))
    np.testing.assert_array_equal(io.load_arrays(tmp_path)[0]["a"], np.arange(3))


@pytest.mark.parametrize(
    "content",
    ["[" * 10**5, "9" * 10**5, '{"a": NaN}', "1e999", '{"a": 1, "a": 2}', '"\\ud800', '{"a": -Infinity}'],
)
def test_json_of_no_use(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(FileError, match=r"a\.json: damaged or not JSON") as caught:
        io.read_json(tmp_path / "a.json")
    assert len(str(caught.value)) < 500


def test_what_is_read_is_a_file_of_a_bounded_size(tmp_path):
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # a hole: takes no room on the disk
    with pytest.raises(FileError, match="bytes, expected at most"):
        io.read_json(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(FileError, match="expected a regular file"):
        io.read_json(path)
    with pytest.raises(FileError, match="expected a regular file"):
        io.read_json(os.devnull)


@pytest.mark.parametrize(
    "name", ["../arrays-0123456789ab.safetensors", "about.json", "", 3, "arrays-x.safetensors"]
)
def test_the_arrays_are_beside_the_index(tmp_path, name):
    io.save_arrays(tmp_path, {"a": np.arange(3)})
    path = tmp_path / "about.json"
    index = json.loads(path.read_text()) | {"arrays": name}
    del index["digest"]
    path.write_text(io.signed(io.to_json(index)))
    with pytest.raises(FileError, match=r"about\.json: arrays: expected"):
        io.load_arrays(tmp_path)


@pytest.mark.parametrize(
    "header", ['{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}', "{", '{"a":7}']
)
def test_arrays_that_numpy_lacks(tmp_path, header):
    io.save_arrays(tmp_path, {"a": np.arange(3)})
    (old,) = tmp_path.glob("*.safetensors")
    content = len(header).to_bytes(8, "little") + header.encode() + bytes(4)
    digest = hashlib.sha256(content).hexdigest()
    old.write_bytes(content)
    path = tmp_path / "about.json"
    index = json.loads(path.read_text()) | {"sha256": digest}
    del index["digest"]
    path.write_text(io.signed(io.to_json(index)))
    with pytest.raises(FileError, match=old.name):
        io.load_arrays(tmp_path)


@pytest.mark.parametrize("content", ["[1, 2]", '{"format": "other 3"}', "{}"])
def test_foreign_json_is_refused(tmp_path, content):
    (tmp_path / "about.json").write_text(content)
    with pytest.raises(ValueError, match="not of format"):
        io.load_arrays(tmp_path)


@pytest.mark.parametrize("content", [b'{"format":', b"\xff\xfe", b""])
def test_broken_json_is_named(tmp_path, content):
    (tmp_path / "about.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"about\.json: damaged or not JSON"):
        io.load_arrays(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        io.load_arrays(tmp_path / "nowhere")


def test_json_takes_arrays_and_refuses_nan():
    assert json.loads(io.to_json({"a": np.arange(3), "b": np.float64(0.5), "c": (1, 2)})) == {
        "a": [0, 1, 2],
        "b": 0.5,
        "c": [1, 2],
    }
    with pytest.raises(ValueError, match="not representable in JSON"):
        io.to_json({"a": np.array([np.nan])})
