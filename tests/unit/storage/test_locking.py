"""Directories that several processes write to: one at a time, each whole, and nothing outlives a killed writer."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae
from ggpi.policies.linear import direction_policies
from ggpi.storage import arrays as io
from ggpi.storage import locking
from ggpi.storage.locking import InUseError, sole_writer

POLICIES = direction_policies()[:2]
SMALL = ggpi.ghm.vae.VAEConfig(width=4, depth=1)


@contextlib.contextmanager
def process(script, *arguments):
    """A Python process that runs the script; killed at the end if it is still there."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


HOLD = """
    import sys
    from ggpi.storage.locking import sole_writer
    with sole_writer(sys.argv[1], "holding"):
        print("locked", flush=True)
        sys.stdin.readline()
"""
SAVE = """
    import sys
    import numpy as np
    from ggpi.storage import arrays as io
    number = int(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(30):
        io.save_arrays(sys.argv[1], {"a": np.full(2000, 100 * number + i)}, {"number": 100 * number + i})
"""


def test_the_second_writer_is_told_of_the_first(tmp_path):
    with process(HOLD, tmp_path) as first:
        first.stdout.readline()
        with pytest.raises(
            InUseError, match=rf"{tmp_path} is in use by process {first.pid} \(holding, since 20"
        ):
            sole_writer(tmp_path, "second").__enter__()
        first.stdin.write("\n")
        first.stdin.flush()
        with sole_writer(tmp_path, "waits", wait=60):
            pass
    assert not list(tmp_path.iterdir()), "the lock's file goes with it"


def test_a_lock_dies_with_its_process(tmp_path):
    with process(HOLD, tmp_path) as first:
        first.stdout.readline()
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert [path.name for path in tmp_path.iterdir()] == [locking.NAME]
        with sole_writer(tmp_path, "second"):
            pass
    assert not list(tmp_path.iterdir())


def test_threads_exclude_each_other_and_may_nest(tmp_path):
    said = []

    def other():
        try:
            with sole_writer(tmp_path, "other"):
                said.append("got it")
        except InUseError as error:
            said.append(str(error))

    with sole_writer(tmp_path, "outer"), sole_writer(tmp_path / ".." / tmp_path.name, "inner"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "in use by this process (outer, since" in said[0]
    other()
    assert said[1] == "got it"


def test_many_threads_take_turns(tmp_path):
    """Half of the critical sections would overlap without the lock."""
    inside, most = [], []

    def work():
        for _ in range(20):
            with sole_writer(tmp_path, "working", wait=60):
                inside.append(0)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160 and max(most) == 1


def test_processes_that_save_to_one_directory_leave_one_whole_save(tmp_path):
    """Readers meanwhile always find one, too."""
    io.save_arrays(tmp_path, {"a": np.full(2000, 0)}, {"number": 0})
    with contextlib.ExitStack() as stack:
        savers = [stack.enter_context(process(SAVE, tmp_path, number)) for number in (1, 2, 3)]
        for saver in savers:
            saver.stdout.readline()
        for saver in savers:
            saver.stdin.write("\n")
            saver.stdin.flush()
        seen = set()
        while any(saver.poll() is None for saver in savers):
            arrays, about = io.load_arrays(tmp_path)
            assert (arrays["a"] == about["number"]).all()
            seen.add(about["number"])
        assert all(saver.returncode == 0 for saver in savers)
    arrays, about = io.load_arrays(tmp_path)
    assert (arrays["a"] == about["number"]).all() and about["number"] % 100 == 29
    assert len(seen) > 1
    assert len(list(tmp_path.iterdir())) == 2


def test_threads_that_save_to_one_directory_leave_one_whole_save(tmp_path):
    def work(number):
        for i in range(10):
            io.save_arrays(tmp_path, {"a": np.full(50, i)}, {"i": i, "number": number})

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arrays, about = io.load_arrays(tmp_path)
    assert about["i"] == 9 and (arrays["a"] == 9).all()


def test_threads_that_write_one_file_never_share_a_path(tmp_path):
    with io.replacing(tmp_path / "file") as one, io.replacing(tmp_path / "file") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "file").read_text() == "one"


def test_what_the_dead_left_is_swept_and_what_the_living_write_is_not(tmp_path):
    script = """
        import os, sys
        from pathlib import Path
        from ggpi.storage import arrays as io
        io.replacing(Path(sys.argv[1]) / "about.json").__enter__().touch()
        os.kill(os.getpid(), 9)
    """
    with process(script, tmp_path) as dead:
        dead.wait()
    (left,) = tmp_path.iterdir()
    assert f"-{dead.pid}-" in left.name
    elsewhere = tmp_path / left.name.replace(io.HOST, "0123abcd")
    elsewhere.touch()
    with io.replacing(tmp_path / "mine") as alive:
        alive.touch()
        io.save_arrays(tmp_path, {})
        assert alive.exists() and elsewhere.exists() and not left.exists()


def test_content_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    done = []
    real_sync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("sync"), real_sync(descriptor)))
    monkeypatch.setattr(Path, "replace", lambda path, to: (done.append("rename"), real_replace(path, to)))
    io.write_text(tmp_path / "file", "words")
    assert done == ["sync", "rename", "sync"]


def test_reading_needs_no_lock(tmp_path):
    io.save_arrays(tmp_path, {"a": np.zeros(2)})
    with process(HOLD, tmp_path) as first:
        first.stdout.readline()
        assert io.load_arrays(tmp_path)[0]["a"].shape == (2,)


@pytest.mark.slow
def test_a_fit_is_told_of_another_one(tmp_path):
    data = ggpi.collect("ggpi/PointMass-v0", POLICIES, 300, seed=0)
    fit = functools.partial(
        ggpi.fit,
        POLICIES,
        data,
        gamma=0.9,
        alpha=0.5,
        key=jax.random.key(0),
        model=SMALL,
        steps=2,
        batch_size=8,
        out=tmp_path,
    )
    with process(HOLD, tmp_path) as first:
        first.stdout.readline()
        with pytest.raises(InUseError, match=rf"in use by process {first.pid} \(holding"):
            fit()

    def again(report):
        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(InUseError, match=r"this process \(ggpi.fit, since"),
        ):
            pool.submit(fit).result()

    fit(callbacks=[again])
    fit()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_pretraining_is_told_of_another_one(tmp_path):
    from ggpi.lab.pretraining import preset, pretrain

    with process(HOLD, tmp_path) as first:
        first.stdout.readline()
        with pytest.raises(InUseError, match=f"in use by process {first.pid}"):
            pretrain(preset("tiny"), tmp_path)


@pytest.mark.slow
def test_metrics_of_a_fit_that_was_killed_before_its_first_checkpoint_are_forgotten(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2}\n{"st')
    data = ggpi.collect("ggpi/PointMass-v0", POLICIES, 300, seed=0)
    given = {"model": SMALL, "steps": 2, "batch_size": 8, "out": tmp_path, "key": jax.random.key(0)}
    ggpi.fit(POLICIES, data, gamma=0.9, alpha=0.5, **given)
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["step"] == 2


def test_columns_have_one_writer(tmp_path):
    data = ggpi.collect("ggpi/PointMass-v0", POLICIES, 32, seed=0)
    ggpi.data.write_npy(tmp_path, data)
    with process(HOLD, tmp_path) as first:
        first.stdout.readline()
        with pytest.raises(InUseError, match=f"in use by process {first.pid}"):
            ggpi.data.write_npy(tmp_path, data)
    assert len(ggpi.data.read_npy(tmp_path)) == 32
