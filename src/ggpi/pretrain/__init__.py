"""Base policies of the ant, trained jointly under random switching."""

from ggpi.pretrain.train import Config, Training, preset, pretrain

__all__ = ["Config", "Training", "preset", "pretrain"]
