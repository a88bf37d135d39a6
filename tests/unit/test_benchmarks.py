"""A smoke test of the benchmarks: weaker ratios at a small size, and the bars that the committed results meet."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def committed(name):
    return json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())


def test_sets_are_faster_than_chains_of_solves():
    """In a process with one BLAS thread, since busy machines stall many; a quarter of the chains, scaled up."""
    code = "import json, exact_sets; print(json.dumps(exact_sets.compare(300, depth=3, subset=16, rounds=3)))"
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BENCHMARKS,
        env=os.environ | one_thread,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(child.stdout)
    assert found["difference"] < 1e-9
    assert found["speed_up"] >= 4


@pytest.mark.parametrize(("depth", "bar"), [(3, 15), (4, 50)])
def test_committed_results_of_exact_sets(depth, bar):
    assert committed("exact_sets")[f"depth {depth}"]["speed_up"] >= bar


@pytest.mark.parametrize("depth", [3, 4])
def test_committed_memory_of_exact_sets(depth):
    assert committed("exact_sets")[f"depth {depth}"]["peak_gb"] < 1


@pytest.mark.parametrize("size", ["10k", "100k"])
def test_committed_results_of_the_optimum(size):
    found = committed("optimal")[size]
    assert found["speed_up"] >= 1
    assert max(found["ggpi_error"], found["quantecon_error"]) <= 1e-8


def test_a_million_states_fit():
    found = committed("optimal")["1M"]
    assert max(found["q_star_peak_gb"], found["evaluation_peak_gb"]) < 8
