"""Transitions of a world."""

from ggpi.data.transitions import Transitions

__all__ = ["Transitions"]
