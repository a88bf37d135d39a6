"""What a model needs to know of a state vector, as plain data that is saved with it."""

from __future__ import annotations

from dataclasses import dataclass

from ggpi.types import whole


@dataclass(frozen=True)
class StateSpec:
    """Names of a state's numbers, and which of them are special.

    `relative` are positions: models drop them from their inputs and predict them as displacements, so that
    they know no place from another. `places` are positions too, where the world has walls or other sharp
    differences: models see them also as sines and cosines of `waves` wavelengths, which should go down to the width of
    what differs. `rotations` are groups of six: two
    axes of a body, three numbers each, which are made orthonormal again in every sample. `predicted` are the
    coordinates that models predict, where these are not all: samples keep the others of the state they start from, so
    that rewards and values should depend on the predicted ones alone.
    """

    names: tuple[str, ...]
    relative: tuple[int, ...] = ()
    rotations: tuple[tuple[int, int, int, int, int, int], ...] = ()
    places: tuple[int, ...] = ()
    predicted: tuple[int, ...] = ()
    waves: int = 5
    """The i-th of them has 2ⁱ radians per standard deviation, i from 0: 5 go down to 0.4 standard deviations."""

    def __post_init__(self):
        size = len(self.names)
        named = *self.relative, *self.places, *self.predicted, *sum(self.rotations, ())
        wrong = [i for i in named if not 0 <= i < size]
        if wrong:
            raise IndexError(f"a state of {size} numbers has indices 0 to {size - 1}, got {wrong}")
        if both := sorted(set(self.relative) & set(self.places)):
            raise ValueError(f"models do not see relative positions, so they are no places; {both} are both")
        if list(self.predicted) != sorted(set(self.predicted)):
            raise ValueError(f"predicted coordinates ascend, got {self.predicted}")
        if self.predicted and not set(self.relative) | set(sum(self.rotations, ())) <= set(self.predicted):
            raise ValueError(
                "positions that models do not see, and rotations, are predicted or left out of the spec"
            )
        whole(self.waves, "waves")
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
