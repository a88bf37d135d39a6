"""The experiments on the ant."""
