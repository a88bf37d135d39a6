"""What a model needs to know of a state vector, as plain data that is saved with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StateSpec:
    """Names of a state's numbers, and which of them are special.

    `relative` are positions: models drop them from their inputs and predict them as displacements, so that
    they know no place from another. `places` are positions too, where the world has walls or other sharp
    differences: models see them also as sines and cosines of several wavelengths. `rotations` are groups of six: two
    axes of a body, three numbers each, which are made orthonormal again in every sample.
    """

    names: tuple[str, ...]
    relative: tuple[int, ...] = ()
    rotations: tuple[tuple[int, int, int, int, int, int], ...] = ()
    places: tuple[int, ...] = ()

    def __post_init__(self):
        size = len(self.names)
        wrong = [i for i in (*self.relative, *self.places, *sum(self.rotations, ())) if not 0 <= i < size]
        if wrong:
            raise IndexError(f"a state of {size} numbers has indices 0 to {size - 1}, got {wrong}")
        if both := sorted(set(self.relative) & set(self.places)):
            raise ValueError(f"models do not see relative positions, so they are no places; {both} are both")
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ValueError(
                f"each number of a state has a name of its own, got {', '.join(twice)} more than once in "
                f"{', '.join(self.names)}; rename all but one"
            )

    @property
    def size(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """The place of a named number."""
        if name not in self.names:
            raise KeyError(f"no part of the state is called {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)
