"""Processes that `jax.distributed` joins: the models of one process up to rounding, or an error that names one."""

import os
import sys
from functools import partial

import numpy as np
import pytest

import cluster_tasks
import drifts
import seeds
from ggpi import cluster

pytestmark = pytest.mark.slow
TOLERANCE = 1e-5
"""Twelve steps move weights by about 1e-2."""


@pytest.fixture(scope="module", autouse=True)
def on_ray():
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # so that Ray's workers find the tasks
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        yield


@pytest.mark.skipif(seeds.OFFSET != 0, reason="other processes start from seeds that are not shifted")
def test_two_processes_train_the_models_of_one():
    alone = drifts.leaves(cluster_tasks.short_fit(12))
    (devices, ghms) = cluster.together(partial(cluster_tasks.devices_and_fit, 12), 2)
    assert devices == (2, 1), "of all processes, and of each"
    for found, expected in zip(drifts.leaves(ghms), alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def test_a_process_that_raises_is_named():
    """The other one waits for it, and is ended."""
    with pytest.raises(cluster.TaskError, match="task process 1: ValueError: 1 is bad"):
        cluster.together(cluster_tasks.fail_in_the_second, 2)


def test_a_process_that_dies_is_named():
    with pytest.raises(cluster.TaskError, match=r"task process .*: it died"):
        cluster.together(cluster_tasks.die_in_the_second, 2)


def test_more_processes_than_cpus():
    with pytest.raises(ValueError, match=r"1000000 processes × 1 threads are more than Ray's \d+ CPUs"):
        cluster.together(cluster_tasks.fail_in_the_second, 1_000_000)
    with pytest.raises(ValueError, match="processes is at least 1, got 0"):
        cluster.together(cluster_tasks.fail_in_the_second, 0)
