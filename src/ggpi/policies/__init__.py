"""Policies: what acts."""

from ggpi.policies.bank import PolicyBank
from ggpi.policies.tabular import TabularPolicy

__all__ = ["PolicyBank", "TabularPolicy"]
