"""How good a learned model is: comparisons with true futures, and checks that need none."""

from ggpi.diagnosis.report import diagnose
from ggpi.diagnosis.truth import Truth, recorded_futures, true_futures

__all__ = ["Truth", "diagnose", "recorded_futures", "true_futures"]
