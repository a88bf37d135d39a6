"""Which rows of a flat file follow each other, and blocks of rows."""

import numpy as np
import pytest

from ggpi.data import read_flat
from ggpi.data.transitions import blocks


def test_a_row_follows_when_all_coordinates_agree(tmp_path):
    """The second coordinate never changes, so it alone tells nothing."""
    state = np.stack([np.arange(6.0), np.ones(6)], axis=1)
    following = state + np.array([1.0, 0.0])
    following[2, 0] = 77.0
    np.savez(tmp_path / "a.npz", observations=state, next_observations=following, actions=np.zeros((6, 1)))
    data = read_flat(tmp_path / "a.npz")
    assert data.episode.tolist() == [0, 0, 0, 1, 1, 1] and data.step.tolist() == [0, 1, 2, 0, 1, 2]
    assert np.flatnonzero(data.truncated).tolist() == [2, 5]


@pytest.mark.parametrize("num", [1, 5, 6, 7, 12, 13])
def test_blocks_are_all_rows_in_their_order(num, monkeypatch):
    """Six rows of two numbers at a time; the last block may be shorter."""
    monkeypatch.setattr("ggpi.data.transitions.BLOCK", 6 * 2 * 8)
    parts = [np.arange(num)[part] for part in blocks(np.zeros((num, 2)))]
    assert np.concatenate(parts).tolist() == [*range(num)] and max(map(len, parts)) == min(num, 6)
