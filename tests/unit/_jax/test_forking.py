"""Processes: a forked one gets an error in the place of a hang, a spawned one works."""

import multiprocessing
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor

import jax
import numpy as np
import pytest

import ggpi
from spawned import best_action

HANGS = 600
"""Seconds until a process counts as hanging; it takes a few."""

FORK = """
    import os, sys, warnings
    import numpy as np
    import ggpi
    from ggpi._jax.jit import jit
    from ggpi.evaluation import evaluate_pairs_sampled
    import jax

    warnings.simplefilter("ignore")
    mdp = ggpi.envs.four_rooms()
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    ghms = ggpi.exact_ghms(mdp, policies, 0.9, 0.5)
    reward = mdp.indicator((1, 11))
    double = jit(lambda x: 2 * x)
    if sys.argv[1] == "used":
        key = jax.random.key(0)
        assert double(np.ones(2))[0] == 2
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    try:
        q = np.asarray(ggpi.evaluate(ggpi.compositions(2, 1, 0.5), ghms, reward))
        assert np.isfinite(q).all()  # NumPy works in any process
        if sys.argv[1] == "unused":
            print(double(np.ones(2)))
            os._exit(0)
        for call in (
            lambda: double(np.ones(2)),
            lambda: ggpi.GGPIAgent(ghms, reward, depth=1),
            lambda: evaluate_pairs_sampled(ggpi.compositions(2, 1, 0.5), ghms, reward, num_samples=2, key=key),
            lambda: ggpi.collect("ggpi/PointMass-v0", [], 10),
            lambda: ggpi.fit([], None, gamma=0.9, alpha=0.5, key=key),
        ):
            try:
                call()
            except RuntimeError as error:
                print(error)
        os._exit(0)
    except BaseException as error:
        print("unexpected", repr(error))
        os._exit(1)
    finally:
        sys.stdout.flush()
"""


def forked(when):
    """What the child of a process that forks before or after its first use of JAX prints."""
    command = [sys.executable, "-u", "-c", textwrap.dedent(FORK), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.timeout(HANGS)
def test_compiled_calls_after_a_fork_say_what_to_do():
    lines = forked("used").splitlines()
    assert len(lines) == 5
    assert all("forked after JAX had started" in line and "'spawn'" in line for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.timeout(HANGS)
def test_a_fork_before_the_first_use_of_jax_works():
    assert forked("unused").strip() == "[2. 2.]"


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_spawned_processes_use_agents(tmp_path):
    """Models reach them through a directory, or pickled as arguments."""
    mdp = ggpi.envs.four_rooms()
    policies = tuple(ggpi.TabularPolicy.constant(mdp, a) for a in range(4))
    ggpi.save(tmp_path / "policies", policies)
    given = str(tmp_path / "policies"), mdp.P, np.asarray(jax.random.key_data(jax.random.key(0)))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:  # raises when its process dies, where a Pool waits
        found = pool.submit(best_action, *given).result()
    assert found == best_action(*given)
