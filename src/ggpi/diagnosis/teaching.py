"""A student of `ggpi.distil` beside its teacher."""

from __future__ import annotations

import jax

from ggpi.diagnosis.distances import mean_energy
from ggpi.diagnosis.measures import clouds
from ggpi.diagnosis.samples import draw_at
from ggpi.diagnosis.truth import Truth
from ggpi.ghm.base import GHMs
from ggpi.types import GHM, Key


def checked_teacher(student: GHMs, teacher: GHMs) -> GHMs:
    """The teacher at the horizons of the student; raises if it has others, or other policies."""
    if not isinstance(teacher, GHMs):
        raise TypeError(
            f"teacher= takes the models that these were distilled from, got a {type(teacher).__name__}; load a saved "
            "one with ggpi.load(path)"
        )
    if teacher.names != student.names:
        raise ValueError(
            f"the models are of the policies {', '.join(student.names)}, those of the teacher of "
            f"{', '.join(teacher.names)}; give the models that these were distilled from"
        )
    if teacher.network is not None and student.gamma <= teacher.network.largest:
        teacher = teacher.with_gamma(student.gamma).with_alpha(student.alphas)
    if teacher.horizons != student.horizons:
        raise ValueError(
            f"the models are of the horizons {list(student.horizons)}, those of the teacher of "
            f"{list(teacher.horizons)}; give the models that these were distilled from"
        )
    return teacher


def beside_teacher(student: GHM, teacher: GHM, truth: Truth, *, key: Key) -> dict[str, float]:
    """Energy distances of the student's samples to the teacher's, and of the teacher's to others and to the truth."""
    keys = jax.random.split(key, 3)
    ours = clouds(truth, draw_at(student, truth, key=keys[0]))
    theirs, again = (clouds(truth, draw_at(teacher, truth, key=k)) for k in keys[1:])
    return {
        "teacher_energy": mean_energy(theirs, ours),
        "teacher_energy_floor": mean_energy(theirs, again),
        "energy_of_teacher": mean_energy(clouds(truth, truth.future), theirs),
    }
