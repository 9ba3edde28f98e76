"""DeadLetterQueue: nothing is lost by looking."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import pytest
import trio

from fetcher.adapters.dead_letters import dead_letter
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import DeadLetterQueue, DeadLetterWindow, OutgoingMessage, RejectReason
from tests.contract.dead_letters.conftest import FilledQueue
from tests.servers.waiting import eventually

REJECTED_AT = datetime(2026, 3, 14, 9, tzinfo=UTC)


def a_letter(body: str) -> OutgoingMessage:
    return dead_letter(
        body=body.encode(),
        headers={"t": "1773480413", "x-retry-count": 0},
        exchange="",
        routing_key="work",
        reason=RejectReason.UNKNOWN_JOB,
        rejected_at=REJECTED_AT,
    )


async def everything(queue: DeadLetterQueue, *, page: int = 2) -> list[DeadLetter]:
    found: list[DeadLetter] = []
    async with queue.open() as window:
        while letters := await window.next_page(limit=page):
            assert len(letters) <= page
            found += letters
        assert window.total == len(found)
    return found


async def wait_for(queue: DeadLetterQueue, *bodies: str) -> list[DeadLetter]:
    """What was put back is there again a little later."""
    found: list[DeadLetter] = []

    async def is_so() -> bool:
        found[:] = await everything(queue)
        return sorted(each.body.decode() for each in found) == sorted(bodies)

    await eventually(is_so, deadline_seconds=10.0, what=f"the letters {bodies}")
    return found


@asynccontextmanager
async def opened_with(queue: DeadLetterQueue, total: int) -> AsyncIterator[DeadLetterWindow]:
    """A window on so many letters, once they are all there."""
    with trio.fail_after(10):
        while True:
            async with queue.open() as window:
                if window.total == total:
                    yield window
                    return
            await trio.sleep(0.02)


async def test_letters_come_with_their_route_and_reason_and_stay(dead: FilledQueue) -> None:
    await dead.fill([a_letter(f'"{number}"') for number in range(5)])
    await wait_for(dead.queue, *(f'"{number}"' for number in range(5)))
    for _ in range(25):
        assert len(await everything(dead.queue, page=3)) <= 5
    letter, *_ = await wait_for(dead.queue, *(f'"{number}"' for number in range(5)))
    assert (letter.exchange, letter.routing_key, letter.reason) == ("", "work", "unknown_job")
    assert (letter.headers["t"], letter.headers["x-retry-count"]) == ("1773480413", 0)


async def test_what_was_removed_is_gone_and_the_rest_is_there(dead: FilledQueue) -> None:
    await dead.fill([a_letter(f'"{number}"') for number in range(5)])
    await wait_for(dead.queue, *(f'"{number}"' for number in range(5)))
    async with opened_with(dead.queue, 5) as window:
        for _ in range(5):
            (letter,) = await window.next_page(limit=1)
            if letter.body in (b'"1"', b'"3"'):
                await window.remove([letter])
    assert window.gone == 2
    await wait_for(dead.queue, '"0"', '"2"', '"4"')


async def test_a_window_gives_out_what_was_there_when_it_was_opened(dead: FilledQueue) -> None:
    await dead.fill([a_letter('"old"')])
    await wait_for(dead.queue, '"old"')
    async with opened_with(dead.queue, 1) as window:
        await dead.fill([a_letter('"new"')])
        assert [each.body for each in await window.next_page(limit=9)] == [b'"old"']
        assert await window.next_page(limit=9) == []
    await wait_for(dead.queue, '"old"', '"new"')


async def test_a_window_that_is_left_by_an_error_or_a_cancel_loses_nothing(
    dead: FilledQueue,
) -> None:
    await dead.fill([a_letter('"a"'), a_letter('"b"')])
    await wait_for(dead.queue, '"a"', '"b"')

    async def fail() -> None:
        async with dead.queue.open() as window:
            await window.next_page(limit=9)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    with trio.CancelScope() as scope:
        async with dead.queue.open() as window:
            await window.next_page(limit=1)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    await wait_for(dead.queue, '"a"', '"b"')


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_what_was_removed_is_gone_however_the_window_is_left(
    dead: FilledQueue, is_cancelled: bool
) -> None:
    await dead.fill([a_letter(f'"{number}"') for number in range(4)])
    await wait_for(dead.queue, *(f'"{number}"' for number in range(4)))
    removed: list[bytes] = []
    with trio.CancelScope() as scope, suppress(PortUnavailable):
        async with opened_with(dead.queue, 4) as window:
            page = await window.next_page(limit=2)
            await window.remove(page)
            removed += [letter.body for letter in page]
            await window.next_page(limit=1)
            if not is_cancelled:
                raise PortUnavailable("the records are away")
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught is is_cancelled
    left = {f'"{number}"'.encode() for number in range(4)} - {*removed}
    assert len(left) == 2
    await wait_for(dead.queue, *(body.decode() for body in left))


async def test_letters_of_a_queue_by_the_table_stand_any_number_of_looks(
    dead: FilledQueue,
) -> None:
    assert await dead.queue.survives_looks()


async def test_an_empty_queue_has_no_page(dead: FilledQueue) -> None:
    async with dead.queue.open() as window:
        assert (window.total, await window.next_page(limit=5)) == (0, [])


async def test_pages_are_bounded_in_bytes(dead: FilledQueue) -> None:
    megabytes = '"' + "x" * (3 * 1024 * 1024) + '"'
    await dead.fill([a_letter(megabytes) for _ in range(4)])
    await wait_for(dead.queue, *[megabytes] * 4)
    async with opened_with(dead.queue, 4) as window:
        assert [len(await window.next_page(limit=9)) for _ in range(2)] == [3, 1]
