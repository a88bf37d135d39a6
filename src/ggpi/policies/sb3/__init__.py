"""Policies of Stable-Baselines3, read without PyTorch and without executing anything."""

from ggpi.policies.sb3.reader import load_sb3

__all__ = ["load_sb3"]
