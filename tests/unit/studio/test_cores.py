"""Threads share the cores: a page that has gone does no more work, and who waits for another keeps no core."""

import threading
import time

import pytest

from ggpi.studio import cores
from ggpi.studio.catalogue import Catalogue, four_rooms
from ggpi.studio.outbox import Outbox
from ggpi.studio.protocol import Pause
from ggpi.studio.session import Session

PATIENCE = 60


@pytest.fixture
def one_core(monkeypatch):
    monkeypatch.setattr(cores, "FREE", cores.Turns(1))
    return cores.FREE


def started(task):
    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    return thread


def is_free():
    """Whether another thread gets the core."""
    done = []
    started(lambda: cores.work(lambda: done.append(1), lambda: False)).join(PATIENCE)
    return bool(done)


def test_a_task_that_is_over_is_not_done(one_core):
    done, over = [], threading.Event()
    one_core.take()
    thread = started(lambda: cores.work(lambda: done.append(1), over.is_set))
    over.set()
    thread.join(PATIENCE)
    assert not thread.is_alive() and not done
    one_core.give()
    assert is_free()


def test_cores_go_to_those_who_waited_longest(one_core):
    """A thread that gives its core back and wants it again at once comes after all others."""
    order, threads = [], []
    one_core.take()
    for name in range(8):
        threads.append(started(lambda name=name: cores.work(lambda: order.append(name), lambda: False)))
        while len(one_core._queue) <= name:
            time.sleep(0.001)
    one_core.give()
    cores.work(lambda: order.append("again"), lambda: False)
    for thread in threads:
        thread.join(PATIENCE)
    assert order == [*range(8), "again"] and is_free()


def test_who_waits_for_another_keeps_no_core(one_core):
    """One thread has the lock and needs a core; the other has the core and needs the lock."""
    lock, has_core, order = threading.Lock(), threading.Event(), []

    def waits():
        has_core.set()
        with cores.in_turn(lock):
            order.append("second")

    with lock:
        thread = started(lambda: cores.work(waits, lambda: False))
        assert has_core.wait(PATIENCE)
        cores.work(lambda: order.append("first"), lambda: False)
    thread.join(PATIENCE)
    assert order == ["first", "second"] and is_free()


@pytest.mark.parametrize("missing", ["lock", "core"])
def test_a_page_that_has_gone_waits_no_longer(one_core, missing):
    """It waits for a lock, or has got the lock and waits for a core: it leaves both to others."""
    lock, waits, over, done = threading.Lock(), threading.Event(), threading.Event(), []

    def task():
        waits.set()
        with cores.in_turn(lock):
            done.append(1)

    lock.acquire()
    thread = started(lambda: cores.work(task, over.is_set))
    assert waits.wait(PATIENCE)
    one_core.take()
    if missing == "core":
        lock.release()
        while lock.acquire(blocking=False):  # until the thread has it
            lock.release()
    over.set()
    thread.join(PATIENCE)
    assert not thread.is_alive() and not done
    if missing == "core":
        assert lock.acquire(timeout=PATIENCE)
    one_core.give()
    assert is_free()


def test_messages_of_a_page_that_has_gone_are_not_answered():
    """It leaves while the first of many is answered: the others are dropped."""

    class Silent(Outbox):
        def __init__(self):
            pass

    session, seen = Session(Catalogue({"four-rooms": four_rooms}), Silent()), []

    def apply(message):
        seen.append(message)
        session.close()

    session.apply = apply
    for _ in range(5):
        assert session.take(Pause())
    session.run()
    assert len(seen) == 1
