"""Finite MDPs: dynamics, resolvents (I − γP^π)⁻¹, optimal values."""
