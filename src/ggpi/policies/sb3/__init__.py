"""Reads policies of Stable-Baselines3, without PyTorch and without executing anything in the file."""

from ggpi.policies.sb3.reader import load_sb3

__all__ = ["load_sb3"]
