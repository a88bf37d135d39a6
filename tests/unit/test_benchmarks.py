"""A smoke test of the benchmarks: weaker ratios at a small size, and the bars that the committed results meet."""

import importlib.util
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def committed(name):
    return json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())


def test_sets_are_faster_than_chains_of_solves():
    found = script("exact_sets").compare(num_states=300, depth=3, rounds=3)
    assert found["difference"] < 1e-9
    assert found["speed_up"] >= 4


@pytest.mark.parametrize(("depth", "bar"), [(3, 15), (4, 50)])
def test_committed_results_of_exact_sets(depth, bar):
    found = committed("exact_sets")[f"depth {depth}"]
    assert found["speed_up"] >= bar
    assert found["peak_gb"] < 1


@pytest.mark.parametrize("size", ["10k", "100k"])
def test_committed_results_of_the_optimum(size):
    found = committed("optimal")[size]
    assert found["speed_up"] >= 1
    assert max(found["ggpi_error"], found["quantecon_error"]) <= 1e-8


def test_a_million_states_fit():
    found = committed("optimal")["1M"]
    assert max(found["q_star_peak_gb"], found["evaluation_peak_gb"]) < 8
