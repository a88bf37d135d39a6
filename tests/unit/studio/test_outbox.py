"""Frames to a slow page: the latest of a kind, in order, and not without bound."""

import asyncio

import pytest

from ggpi.studio.outbox import MOST, Outbox


@pytest.fixture
def outbox():
    loop = asyncio.new_event_loop()
    yield Outbox(loop)
    loop.close()


def taken(outbox, count):
    async def take():
        return [await outbox.get() for _ in range(count)]

    return asyncio.run(take())


def test_the_latest_frame_of_a_kind_waits(outbox):
    for frame, kind in (("1", "moment"), ("error", None), ("2", "moment"), ("error", None), ("a", "values")):
        outbox.put(frame, kind)
    assert taken(outbox, 4) == ["error", "2", "error", "a"] and outbox.dropped == 1


def test_messages_do_not_wait_without_bound(outbox):
    for i in range(MOST):
        outbox.put(str(i))
    assert not outbox.is_full
    outbox.put("one more")
    assert outbox.is_full
    assert taken(outbox, MOST) == [str(i) for i in range(MOST)]


def test_moments_alone_never_fill_it(outbox):
    for i in range(2 * MOST):
        outbox.put(str(i), "moment")
    assert not outbox.is_full and taken(outbox, 1) == [str(2 * MOST - 1)]
