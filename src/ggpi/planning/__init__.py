"""Planning: which switching policy to follow, with few samples; and switching that looks at the state."""

from ggpi.planning.closed_loop import evaluate_closed_loop

__all__ = ["evaluate_closed_loop"]
