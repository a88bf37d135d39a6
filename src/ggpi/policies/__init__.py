"""Policies: what acts."""

from ggpi.policies.tabular import TabularPolicy

__all__ = ["TabularPolicy"]
