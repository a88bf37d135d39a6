"""The weights that come with the package: their size, their digests, and networks that are stored once."""

import hashlib

import pytest

from ggpi.storage.pretrained import WEIGHTS, names, pretrained, provenance

MEGABYTE = 1_000_000


def test_all_weights_together_are_small():
    sizes = [path.stat().st_size for path in WEIGHTS.rglob("*") if path.is_file()]
    assert sum(sizes) <= 5 * MEGABYTE


@pytest.mark.parametrize("name", names())
def test_stated_digests_are_those_of_the_files(name):
    (folder,) = (path for path in (WEIGHTS / name).iterdir() if path.is_dir())
    for file, digest in provenance(name).get("sha256", {}).items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest


def test_the_ant_has_one_network():
    longer, shorter = pretrained("ant-ghms").models
    assert longer.base.network.first is shorter.base.network.first
    right, *others = pretrained("ant-policies")
    assert all(other.base.network.weights[0] is right.base.network.weights[0] for other in others)
