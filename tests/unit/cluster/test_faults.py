"""Killed workers, a removed node, a killed driver, no memory: nothing is lost, or an error names the task."""

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import cluster_tasks
from ggpi import cluster

CHAOS = Path(__file__).parents[2] / "fuzz" / "chaos.py"


@pytest.mark.parametrize("kind", ["processes", pytest.param("ray", marks=pytest.mark.slow)])
def test_chaos(kind):
    """A round of the campaign."""
    if kind == "ray":
        pytest.importorskip("ray")
    command = [sys.executable, CHAOS, "--rounds", "1", "--on", kind]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 rounds of 100 tasks" in done.stdout and "all results the same" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("place", ["processes:2", "ray"])
def test_a_killed_driver_resumes(place, tmp_path):
    """Killed once some cells are there; the same command ends with the numbers of a run that was not killed."""
    if place == "ray":
        pytest.importorskip("ray")
    command = [
        sys.executable,
        "-m",
        "ggpi",
        "run",
        "counterexamples",
        "--preset",
        "tiny",
        "--on",
        place,
        "--out",
    ]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    driver = subprocess.Popen(
        [*command, str(tmp_path / "out")], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    cells = tmp_path / "out" / "cells"
    cluster_tasks.wait_until(lambda: any(cells.rglob("*.json")) or driver.poll() is not None)
    driver.kill()
    driver.wait()
    kept = {path: path.read_bytes() for path in cells.rglob("[!.]*.json")}
    subprocess.run([*command, str(tmp_path / "out")], check=True, capture_output=True)
    found, expected = ((tmp_path / name / "metrics.json").read_bytes() for name in ("out", "whole"))
    assert found == expected
    assert kept and all(path.read_bytes() == text for path, text in kept.items())


NODES = """
import sys, threading
from functools import partial
from ray.cluster_utils import Cluster
import ray, cluster_tasks
from ggpi import cluster

if __name__ == "__main__":
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    one, other = nodes.add_node(num_cpus=1), nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address)
    begun = []

    def begin(name):
        begun.append(name)
        if name == "20":
            nodes.remove_node(one, allow_graceful=False)
        if name == "40":
            nodes.add_node(num_cpus=1)

    executor, tasks = cluster.ray(), {str(number): number for number in range(60)}
    assert executor.workers == 2
    found = dict(executor.completed(partial(cluster_tasks.big, 200_000), tasks, begin=begin))
    assert {name: (len(values), values[0]) for name, values in found.items()} == {
        name: (200_000, number) for name, number in tasks.items()
    }
    assert set(begun) == set(tasks)
    executor.close()
    assert ray.is_initialized(), "a connection that others made stays"
    ray.shutdown()
    nodes.shutdown()
    print("all there,", len(begun) - len(tasks), "repeated")
"""


def run_script(script, folder, **variables):
    (folder / "script.py").write_text(script)
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_node_is_removed(tmp_path):
    """Results in the node's object store are lost with it, and computed elsewhere."""
    pytest.importorskip("ray")
    assert "all there" in run_script(NODES, tmp_path)


MEMORY = """
import ray, cluster_tasks
from ggpi import cluster

if __name__ == "__main__":
    ray.init(address="local", num_cpus=1, include_dashboard=False, _system_config={"memory_usage_threshold": 0.0001})
    try:
        cluster.ray().map(cluster_tasks.nap, [30.0])
    except cluster.TaskError as error:
        print(error)
    ray.shutdown()
"""


@pytest.mark.slow
def test_a_worker_without_memory_is_named(tmp_path):
    """Ray ends the workers of a node whose memory is used beyond a threshold, here at once."""
    pytest.importorskip("ray")
    said = run_script(MEMORY, tmp_path)
    assert said.startswith("task 0: its worker died 4 times") and "memory" in said, said


def test_a_task_that_allocates_too_much_is_named():
    with cluster.processes(1) as executor, pytest.raises(cluster.TaskError, match="task 0: MemoryError"):
        executor.map(cluster_tasks.allocate, [2**50])


def test_a_worker_that_is_killed_while_it_waits(tmp_path):
    """Between two maps, when no task could be lost."""
    with cluster.processes(2) as executor:
        for pid in set(executor.map(cluster_tasks.nap, [0.1] * 4)):
            os.kill(pid, signal.SIGKILL)
        assert executor.map(cluster_tasks.square, range(5)) == [0, 1, 4, 9, 16]


def test_other_threads_may_map_too():
    """An executor of its own for each thread."""
    found = {}

    def work(name):
        with cluster.processes(1) as executor:
            found[name] = executor.map(partial(cluster_tasks.fail_at, -1), range(5))

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": [0, 1, 2, 3, 4], "b": [0, 1, 2, 3, 4]}
