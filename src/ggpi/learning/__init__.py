"""Learning geometric horizon models from transitions."""

from ggpi.learning.fitting import fit
from ggpi.learning.losses import CEMC, CETD, LL2TD
from ggpi.learning.recipe import CPU, PAPER, Recipe

__all__ = ["CEMC", "CETD", "CPU", "LL2TD", "PAPER", "Recipe", "fit"]
