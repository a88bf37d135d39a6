"""One suite for all executors: order, names in errors, repeated tasks, and what workers see of this process."""

import os
import signal
import subprocess
import sys
from collections import Counter
from functools import partial

import pytest

import cluster_tasks
from ggpi import cluster
from ggpi.cluster.environment import variables
from ggpi.cluster.executor import RETRIES

NUMBERS = range(12)


@pytest.fixture(scope="module", params=["local", "processes:2", pytest.param("ray", marks=pytest.mark.slow)])
def executor(request):
    if request.param == "ray":
        pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # so that Ray's workers find the tasks
        with cluster.named(request.param) as executor:
            yield executor


@pytest.fixture
def remote(executor):
    if executor.workers == 1:
        pytest.skip("tasks run in this process")
    return executor


def test_results_are_in_order(executor):
    assert executor.map(cluster_tasks.square, NUMBERS) == [number**2 for number in NUMBERS]
    assert executor.map(cluster_tasks.square, []) == []


def test_results_come_with_names_as_tasks_end(executor):
    tasks, begun = {f"n/{number}": number for number in NUMBERS}, []
    found = dict(executor.completed(cluster_tasks.square, tasks, begin=begun.append))
    assert found == {name: number**2 for name, number in tasks.items()}
    assert begun == list(tasks)


def test_an_error_names_the_task(executor):
    tasks = {f"n/{number}": number for number in NUMBERS}
    with pytest.raises(cluster.TaskError, match="task n/3: ValueError: 3 is bad") as caught:
        list(executor.completed(partial(cluster_tasks.fail_at, 3), tasks))
    assert caught.value.task == "n/3"
    assert isinstance(caught.value.__cause__, ValueError)
    assert executor.map(cluster_tasks.square, [2]) == [4], "the executor is still of use"


def test_no_result_is_lost_to_an_error(executor):
    """Tasks that were begun before the error are waited for; none is begun after it."""
    begun, found = [], []
    with pytest.raises(cluster.TaskError):
        for name, _ in executor.completed(
            partial(cluster_tasks.fail_at, 3), {str(n): n for n in range(100)}, begin=begun.append
        ):
            found.append(name)
    assert sorted([*found, "3"]) == sorted(begun)
    assert executor.workers > 1 or len(begun) == 4  # several workers may be anywhere when one fails


def test_errors_keep_the_traceback_of_the_worker(remote):
    with pytest.raises(cluster.TaskError) as caught:
        remote.map(partial(cluster_tasks.fail_at, 0), [0])
    assert "in fail_at" in "".join(caught.value.__cause__.__notes__)


def test_an_error_that_cannot_be_pickled_keeps_its_text(remote):
    with pytest.raises(cluster.TaskError, match="Unpicklable: 7 of 8"):
        remote.map(cluster_tasks.fail_strangely, [0])


def test_tasks_whose_worker_died_are_repeated(remote, tmp_path):
    for life in range(RETRIES):
        (tmp_path / str(life)).touch()
    assert remote.map(partial(cluster_tasks.die_at, 5, tmp_path), NUMBERS) == list(NUMBERS)
    assert not list(tmp_path.iterdir())


def test_a_task_that_always_ends_its_worker_is_named(remote, tmp_path):
    for life in range(2 * RETRIES):
        (tmp_path / str(life)).touch()
    with pytest.raises(cluster.TaskError, match=f"task 5: its worker died {RETRIES + 1} times"):
        remote.map(partial(cluster_tasks.die_at, 5, tmp_path), NUMBERS)
    assert len(list(tmp_path.iterdir())) == RETRIES - 1


def test_workers_are_kept(remote):
    seen = Counter(pid for _ in range(3) for pid in remote.map(cluster_tasks.nap, [0.0] * 6))
    assert os.getpid() not in seen
    assert len(seen) < 9, "of 18 tasks; Ray may replace some workers"


def test_workers_import_neither_jax_nor_numpy(remote):
    assert {frozenset(found - {"ray"}) for _, found in remote.map(cluster_tasks.where, NUMBERS)} == {
        frozenset()
    }


def test_workers_have_the_threads_of_a_task(remote):
    names = "NPROC", "OMP_NUM_THREADS", "XLA_FLAGS"
    one, two, flags = remote.map(cluster_tasks.variable, names)
    assert (one, two) == ("1", "1") and "--xla_cpu_multi_thread_eigen=false" in flags


def test_what_is_bound_to_the_function_is_sent_once(remote):
    """Unpickling counts itself in the worker."""
    counts = remote.map(partial(cluster_tasks.count_loads, cluster_tasks.Counted()), range(20))
    assert max(count for _, count in counts) == 1


def test_bits_do_not_depend_on_the_executor(remote):
    with cluster.processes(1) as alone:
        expected = alone.map(partial(cluster_tasks.product, (300, 2000)), range(3))
    assert remote.map(partial(cluster_tasks.product, (300, 2000)), range(3)) == expected


def test_functions_that_cannot_be_imported_are_named():
    with (
        cluster.processes(1) as executor,
        pytest.raises(TypeError, match=r"the function cannot.*can be imported"),
    ):
        executor.map(lambda task: task, [1])
    with cluster.processes(1) as executor, pytest.raises(TypeError, match=r"task 1 cannot.*can be imported"):
        executor.map(cluster_tasks.where, [0, lambda: 1])


def test_variables():
    found = variables(
        3, {"XLA_FLAGS": "--a=1 --xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu", "HOME": "/"}
    )
    assert found["XLA_FLAGS"] == "--a=1 --xla_cpu_multi_thread_eigen=true"
    assert found["NPROC"] == found["OMP_NUM_THREADS"] == "3"
    assert found["JAX_PLATFORMS"] == "cpu" and "HOME" not in found


@pytest.mark.parametrize(
    ("text", "words"),
    [("processes", "processes:N"), ("processes:0", "at least 1, got 0"), ("ray://host", "ray://host:port")],
)
def test_wrong_names_raise(text, words):
    with pytest.raises(ValueError, match=words):
        cluster.named(text)


def test_the_cluster_room_imports_neither_jax_nor_ray():
    code = (
        "import sys, ggpi.cluster; print([name for name in ('jax', 'numpy', 'ray') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


DRIVER = """
import signal, sys, cluster_tasks
from ggpi import cluster
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored if tests run in the background
    with cluster.named(sys.argv[1]) as executor:
        print(*executor.map(cluster_tasks.nap, [0.0] * 8), flush=True)
        executor.map(cluster_tasks.nap, [600.0] * 8)
"""


@pytest.mark.parametrize("name", ["processes:2", pytest.param("ray", marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind(name, number, tmp_path):
    """After Ctrl-C, after a polite signal, and after one that the driver cannot handle."""
    if name == "ray":
        pytest.importorskip("ray")
    (tmp_path / "driver.py").write_text(DRIVER)
    driver = subprocess.Popen(
        [sys.executable, "driver.py", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert driver.stdout is not None
    workers = set(map(int, driver.stdout.readline().split()))
    assert workers
    driver.send_signal(number)
    assert driver.wait() != 0
    driver.stdout.close()
    cluster_tasks.wait_until(lambda: not any(map(cluster_tasks.is_alive, workers)))
