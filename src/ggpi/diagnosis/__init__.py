"""Is a learned model any good? Numbers against true futures, and checks of its health."""

from ggpi.diagnosis.report import diagnose
from ggpi.diagnosis.truth import Truth, recorded_futures, true_futures

__all__ = ["Truth", "diagnose", "recorded_futures", "true_futures"]
