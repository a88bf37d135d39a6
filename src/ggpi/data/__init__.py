"""Data: transitions, what their states are made of, and where transitions are kept."""

from ggpi.data.files import read_npy, read_npz, write_npy, write_npz
from ggpi.data.flat import read_flat
from ggpi.data.memory import within_memory
from ggpi.data.minari import read_minari, write_minari
from ggpi.data.spec import StateSpec
from ggpi.data.transitions import Transitions

__all__ = [
    "StateSpec",
    "Transitions",
    "read_flat",
    "read_minari",
    "read_npy",
    "read_npz",
    "within_memory",
    "write_minari",
    "write_npy",
    "write_npz",
]
