"""Transitions of a world, and what its states are made of."""

from ggpi.data.spec import StateSpec
from ggpi.data.transitions import Transitions

__all__ = ["StateSpec", "Transitions"]
