"""The verdict: each number has its thresholds, the worst decides, and reasons are said."""

import pytest

from ggpi.diagnosis import verdict
from ggpi.diagnosis.verdict import judge

GOOD = {
    "dimensions": 4,
    "futures_per_pair": 256,
    "energy": 0.05,
    "energy_floor": 0.01,
    "nll": -1.0,
    "nll_blank": 0.5,
    "spread_ratio": 1.1,
    "action_response": 0.9,
    "state_dependence": 0.5,
    "state_dependence_true": 0.6,
    "off_data": 0.02,
    "consistency": 0.01,
    "consistency_floor": -0.001,
}


def test_a_good_model_needs_no_reasons():
    assert judge(GOOD) == {"verdict": "good", "why": []}


@pytest.mark.parametrize(
    ("name", "usable", "bad", "words"),
    [
        ("energy", 0.14, 0.42, "unlike true futures"),
        ("spread_ratio", 1.4, 2.1, "times too wide"),
        ("spread_ratio", 0.7, 0.4, "too narrow"),
        ("action_response", 0.5, 0.1, "first action"),
        ("action_response", 1.5, -0.2, "first action"),
        ("state_dependence", 0.3, 0.1, "depends too little on the state"),
        ("off_data", 0.2, 0.4, "are far from all visited states"),
        ("consistency", 0.2, 0.5, "when composed"),
    ],
)
def test_each_number_has_two_thresholds(name, usable, bad, words):
    for value, wanted in ((usable, "usable"), (bad, "bad")):
        found = judge(GOOD | {name: value})
        assert found["verdict"] == wanted
        assert len(found["why"]) == 1 and words in found["why"][0]
    assert judge(GOOD | {name: float("nan")})["verdict"] == "bad"


def test_knowing_less_than_nothing_is_bad():
    for worse in ({"nll": 0.6}, {"held_out_loss": 1.5, "held_out_blank": verdict.KNOWING_NOTHING}):
        found = judge(GOOD | worse)
        assert found["verdict"] == "bad" and "less than mean and spread alone" in found["why"][0]
    assert (
        judge(GOOD | {"held_out_loss": 1.4, "held_out_blank": verdict.KNOWING_NOTHING})["verdict"] == "good"
    )


def test_the_worst_decides_and_comes_first():
    found = judge(GOOD | {"energy": 0.2, "action_response": 0.0})
    assert found["verdict"] == "bad"
    assert [words.split(" (")[0] for words in found["why"]] == [
        "ignores the first action",
        "samples are distributed unlike true futures",
    ]


def test_floors_are_what_chance_makes():
    assert judge(GOOD | {"energy": 0.2, "energy_floor": 0.15})["verdict"] == "good"
    assert judge(GOOD | {"energy": 0.13, "energy_floor": -0.5})["verdict"] == "usable", "no credit below 0"


def test_one_future_for_each_pair_has_thresholds_of_its_own():
    assert judge(GOOD | {"futures_per_pair": 1, "energy": 0.07})["verdict"] == "usable"


def test_a_record_cannot_tell_whether_a_model_should_depend_on_the_first_action():
    record = {name: value for name, value in GOOD.items() if name != "action_response"}
    assert judge(record | {"action_shift": 0.1})["verdict"] == "good"
    found = judge(record | {"action_shift": 0.0})
    assert found["verdict"] == "usable" and "only --env can judge" in found["why"][0]
    assert judge(record | {"action_shift": 0.0, "action_shift_true": 0.0})["verdict"] == "good"


def test_what_is_not_measured_is_not_judged():
    measured = ("energy", "dimensions")
    assert judge({name: GOOD[name] for name in measured})["verdict"] == "good"
    assert judge({"held_out_loss": 1.0, "held_out_blank": 1.4})["verdict"] == "usable"
    weak = GOOD | {"state_dependence": 0.0, "state_dependence_true": 0.1}
    assert judge(weak)["verdict"] == "good", "the truth hardly depends on the state either"
