"""Base policies of the ant, trained jointly under random switching."""

from ggpi.lab.pretraining.train import Config, Training, preset, pretrain

__all__ = ["Config", "Training", "preset", "pretrain"]
