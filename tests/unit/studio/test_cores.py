"""Threads share the cores: a page that has gone does no more work, and who waits for another keeps no core."""

import threading

import pytest

from ggpi.studio import cores
from ggpi.studio.catalogue import Catalogue, four_rooms
from ggpi.studio.outbox import Outbox
from ggpi.studio.protocol import Pause
from ggpi.studio.session import Session

PATIENCE = 60


@pytest.fixture
def one_core(monkeypatch):
    monkeypatch.setattr(cores, "FREE", threading.BoundedSemaphore(1))
    return cores.FREE


def started(task):
    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    return thread


def test_a_task_that_is_over_is_not_done(one_core):
    done, over = [], threading.Event()
    with one_core:
        thread = started(lambda: cores.work(lambda: done.append(1), over.is_set))
        over.set()
        thread.join(PATIENCE)
    assert not thread.is_alive() and not done
    assert one_core.acquire(blocking=False)


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
    assert order == ["first", "second"] and one_core.acquire(blocking=False)


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
    assert waits.wait(PATIENCE) and one_core.acquire(timeout=PATIENCE)
    if missing == "core":
        lock.release()
        while lock.acquire(blocking=False):  # until the thread has it
            lock.release()
    over.set()
    thread.join(PATIENCE)
    assert not thread.is_alive() and not done
    if missing == "core":
        assert lock.acquire(timeout=PATIENCE)
    one_core.release()
    assert one_core.acquire(blocking=False)


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
