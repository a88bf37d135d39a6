"""Transitions of a world, what its states are made of, and where transitions are kept."""

from ggpi.data.buffer import RingBuffer
from ggpi.data.files import read_npz, write_npz
from ggpi.data.minari import read_minari, write_minari
from ggpi.data.spec import StateSpec
from ggpi.data.transitions import Transitions

__all__ = [
    "RingBuffer",
    "StateSpec",
    "Transitions",
    "read_minari",
    "read_npz",
    "write_minari",
    "write_npz",
]
