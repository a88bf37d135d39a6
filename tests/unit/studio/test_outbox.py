"""Frames for one page: in order, bounded, and none for a page that leaves too many unread."""

import asyncio

import pytest
from websockets.exceptions import ConnectionClosed

from ggpi.studio import server
from ggpi.studio.outbox import MOST, Outbox

from .conftest import PATIENCE, connected, running


def filled(outbox, count, start=0):
    for i in range(start, start + count):
        outbox.put(f"text {i}")


async def taken(outbox, count):
    return [await asyncio.wait_for(outbox.get(), PATIENCE) for _ in range(count)]


def test_an_outbox_is_full_after_its_last_place():
    async def talk():
        outbox = Outbox(asyncio.get_running_loop())
        filled(outbox, MOST)
        assert not outbox.is_full
        outbox.put("one too many")
        assert outbox.is_full
        assert await taken(outbox, MOST) == [f"text {i}" for i in range(MOST)]

    asyncio.run(talk())


def test_frames_that_replace_each_other_never_fill_it():
    async def talk():
        outbox = Outbox(asyncio.get_running_loop())
        filled(outbox, MOST - 1)
        for i in range(3 * MOST):
            outbox.put(f"plan {i}", "moment 0")
        assert not outbox.is_full and outbox.dropped == 3 * MOST - 1
        assert (await taken(outbox, MOST))[-1] == f"plan {3 * MOST - 1}"

    asyncio.run(talk())


def test_the_latest_frame_of_a_kind_waits():
    async def talk():
        outbox = Outbox(asyncio.get_running_loop())
        for frame, kind in (
            ("1", "moment"),
            ("error", None),
            ("2", "moment"),
            ("error", None),
            ("a", "values"),
        ):
            outbox.put(frame, kind)
        assert await taken(outbox, 4) == ["error", "2", "error", "a"] and outbox.dropped == 1

    asyncio.run(talk())


def test_one_that_is_read_has_room_again():
    async def talk():
        outbox = Outbox(asyncio.get_running_loop())
        for start in range(0, 4 * MOST, MOST // 2):
            filled(outbox, MOST // 2, start)
            assert await taken(outbox, MOST // 2) == [f"text {i}" for i in range(start, start + MOST // 2)]
        assert not outbox.is_full

    asyncio.run(talk())


def test_nothing_is_sent_to_a_page_whose_outbox_is_full():
    """It is disconnected instead: the sender of frames ends, and the page with it."""

    class Page:
        def __init__(self):
            self.sent = []

        async def send_text(self, text):
            self.sent.append(text)

    async def talk():
        outbox, page = Outbox(asyncio.get_running_loop()), Page()
        filled(outbox, MOST + 1)
        await asyncio.wait_for(server._sent(page, outbox), PATIENCE)
        return page.sent

    assert asyncio.run(talk()) == []


def test_no_more_pages_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(server, "MOST_SESSIONS", 2)
    with running() as port, connected(port) as one:
        one.until("hello")
        with connected(port) as other:
            other.until("hello")
            with connected(port) as third, pytest.raises(ConnectionClosed) as closed:
                third.next()
            assert closed.value.rcvd.code == 1013 and closed.value.rcvd.reason == "too many pages are open"
        while True:
            with connected(port) as again:
                try:
                    assert again.until("hello")
                except ConnectionClosed:
                    continue  # the server has not heard yet that the other page has gone
            break
