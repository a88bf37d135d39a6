"""Good, usable or bad: what the numbers of a model say, from thresholds that were chosen by measuring.

Each check takes one number of `ggpi.diagnose` and has two thresholds: up to the first the model is good, up to the
second usable, else bad; the worst check decides. A number that was not measured is not judged.

The thresholds were set on models of five worlds (a ring, a point mass, a linear-Gaussian system, Pendulum, CartPole),
trained briefly and well, and on the same models made worse on purpose: blind to the first action, blind to the state,
shifted, noisy, too wide and too narrow. `docs/tutorials/diagnose.md` has the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Numbers = Mapping[str, Any]
LEVELS = ("good", "usable", "bad")

DISTANCE = (0.06, 0.2)
"""Energy distance over √D, less its floor. Of Gaussians, a third of a spread beside the truth is 0.06, 0.6 spreads 0.2;
so are 1.5 and 2.1 times too wide."""
JOINT_DISTANCE = (0.02, 0.06)
"""The same where each pair has one recorded future: clouds of (x, X) share their x, so faults weigh a third."""
SPREAD = (1.3, 2.0)
"""How many times too wide or too narrow. Too wide makes depth 1 look better than it is; models that were trained
briefly are wider by 1.2 and more."""
RESPONSE = (0.3, 0.6)
"""How far `action_response` is from 1. A model at 0.4 tells first actions apart by less than half of what it should;
with one at 0, which can look perfect by every other number, all first actions are alike."""
IGNORED = 0.25
"""A response this small is called ignoring the action."""
NO_SHIFT = (-0.02, 0.0)
"""Minus the shift between two first actions, in spreads, where only a record exists: true shifts were 0.07 and more. A
model without any may be right, which a record cannot tell, so it is usable at best."""
DEPENDENCE = (0.4, 0.7)
"""The part of the truth's dependence on the state that a model lacks; it lacks all of it if it gives the same cloud
everywhere."""
OFF_DATA = (0.1, 0.3)
"""The share of samples farther from all visited states than 1% of true futures. Values of rewards there mean nothing,
and a composition continues from there."""
BLANK = (0.0, 0.0)
"""Nats per dimension by which a model is worse than a Gaussian of the mean and spread of all displacements."""
KNOWING_NOTHING = 0.5 * math.log(2 * math.pi * math.e)
"""The loss per dimension of that Gaussian in the normalised coordinates of a training."""
LEAST_DEPENDENCE = 0.2
"""Where futures depend on the state by less, a model's dependence is not judged: it is lost in noise of ±0.03."""


class Check(NamedTuple):
    """A number to judge, its thresholds, and what is wrong when it is too large."""

    value: Callable[[Numbers], float | None]
    thresholds: tuple[float, float]
    words: Callable[[Numbers], str]


def judge(numbers: Numbers) -> dict[str, Any]:
    """`verdict` ("good", "usable" or "bad") and `why`: a list of reasons, those of the worst level first."""
    found = [] if "energy" in numbers else [(1, "its samples could not be compared with true futures")]
    for check in _checks(numbers):
        value = check.value(numbers)
        if value is None:
            continue
        level = sum(not value <= threshold for threshold in check.thresholds)
        if level:
            found.append((level, check.words(numbers)))
    found.sort(key=lambda reason: -reason[0])
    return {"verdict": LEVELS[max((level for level, _ in found), default=0)], "why": [w for _, w in found]}


def _checks(numbers: Numbers) -> list[Check]:
    joint = numbers.get("futures_per_pair") == 1
    return [
        Check(_worse_than_blank("nll", "nll_blank"), BLANK, _blank_words),
        Check(_worse_than_blank("held_out_loss", "held_out_blank"), BLANK, _loss_words),
        Check(_beyond_floor("energy"), JOINT_DISTANCE if joint else DISTANCE, _distance_words),
        Check(_lacking_response, RESPONSE, _response_words),
        Check(_unknown_shift, NO_SHIFT, _shift_words),
        Check(_lacking_dependence, DEPENDENCE, _dependence_words),
        Check(_wrong_spread, SPREAD, _spread_words),
        Check(lambda n: n.get("off_data"), OFF_DATA, _off_words),
        Check(_beyond_floor("consistency"), DISTANCE, _consistency_words),
    ]


def _beyond_floor(name: str) -> Callable[[Numbers], float | None]:
    def value(numbers: Numbers) -> float | None:
        if name not in numbers:
            return None
        excess = numbers[name] - max(numbers.get(f"{name}_floor", 0.0), 0.0)
        return excess / math.sqrt(numbers["dimensions"])

    return value


def _worse_than_blank(name: str, blank: str) -> Callable[[Numbers], float | None]:
    return lambda numbers: numbers[name] - numbers[blank] if name in numbers else None


def _lacking_response(numbers: Numbers) -> float | None:
    return abs(1 - numbers["action_response"]) if "action_response" in numbers else None


def _unknown_shift(numbers: Numbers) -> float | None:
    is_known = "action_shift_true" in numbers or "action_shift" not in numbers
    return None if is_known else -numbers["action_shift"]


def _lacking_dependence(numbers: Numbers) -> float | None:
    true = numbers.get("state_dependence_true", 0.0)
    return 1 - numbers["state_dependence"] / true if true > LEAST_DEPENDENCE else None


def _wrong_spread(numbers: Numbers) -> float | None:
    if "spread_ratio" not in numbers:
        return None
    return math.exp(abs(math.log(max(numbers["spread_ratio"], 1e-9))))


def _blank_words(n: Numbers) -> str:
    return f"knows less than mean and spread alone (NLL {n['nll']:.2g}, they score {n['nll_blank']:.2g})"


def _loss_words(n: Numbers) -> str:
    found, blank = n["held_out_loss"], n["held_out_blank"]
    return f"knows less than mean and spread alone (held-out loss {found:.2f}, they score {blank:.2f})"


def _distance_words(n: Numbers) -> str:
    return f"samples are distributed unlike true futures (energy {n['energy']:.2g})"


def _response_words(n: Numbers) -> str:
    response = n["action_response"]
    fault = "ignores the first action" if abs(response) < IGNORED else "gets the first action's effect wrong"
    return f"{fault} (moves by {response:.0%} of the true shift)"


def _shift_words(n: Numbers) -> str:
    return f"hardly depends on the first action (shift {n['action_shift']:.2g} spreads), which only --env can judge"


def _dependence_words(n: Numbers) -> str:
    found, true = n["state_dependence"], n["state_dependence_true"]
    return f"depends too little on the state (correlation {found:.2g}, in truth {true:.2g})"


def _spread_words(n: Numbers) -> str:
    ratio = n["spread_ratio"]
    if ratio < 1:
        return f"too narrow, {ratio:.2g} of the true spread"
    return f"{ratio:.2g} times too wide"


def _off_words(n: Numbers) -> str:
    return f"{n['off_data']:.0%} of its samples are far from all visited states"


def _consistency_words(n: Numbers) -> str:
    return f"disagrees with the model of the longer horizon when composed (energy {n['consistency']:.2g})"
