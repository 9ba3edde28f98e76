"""How many dead letters there are and since when, for every queue of them."""

from datetime import UTC, datetime

import pytest

from fetcher.adapters.dead_letters import dead_letter
from fetcher.ports import DeadLetterLevel, DeadLetterLevels, OutgoingMessage, RejectReason
from tests.contract.dead_letters.conftest import NOW, FilledQueue
from tests.contract.dead_letters.test_dead_letter_queues import opened_with
from tests.servers.waiting import eventually

MONDAY, TUESDAY = (datetime(2026, 3, day, 9, tzinfo=UTC) for day in (16, 17))


def a_letter(rejected_at: datetime) -> OutgoingMessage:
    return dead_letter(
        body=b"{}",
        headers={},
        exchange="",
        routing_key="work",
        reason=RejectReason.MALFORMED,
        rejected_at=rejected_at,
    )


async def level_of(levels: DeadLetterLevels, count: int) -> DeadLetterLevel:
    found: list[DeadLetterLevel] = []

    async def is_so() -> bool:
        found[:] = [await levels.level()]
        return found[0].messages == count

    await eventually(is_so, deadline_seconds=15.0, what=f"{count} dead letters")
    return found[0]


@pytest.mark.integration
async def test_an_empty_queue_has_no_oldest_letter(dead: FilledQueue) -> None:
    assert await dead.levels.level() == DeadLetterLevel(messages=0, oldest_at=None)


@pytest.mark.integration
async def test_the_oldest_tells_its_time_and_stays_where_it_is(dead: FilledQueue) -> None:
    await dead.fill([a_letter(MONDAY), a_letter(TUESDAY)])
    assert (await level_of(dead.levels, 2)).oldest_at == MONDAY
    await dead.fill([a_letter(NOW)])
    assert (await level_of(dead.levels, 3)).oldest_at == MONDAY
    async with opened_with(dead.queue, 3) as window:
        letters = await window.next_page(limit=10)
        assert [each.headers["x-fetcher-rejected-at"] for each in letters] == [
            "2026-03-16T09:00:00Z",
            "2026-03-17T09:00:00Z",
            "2026-03-19T09:00:00Z",
        ]
        await window.remove(letters[:1])
    assert (await level_of(dead.levels, 2)).oldest_at == TUESDAY
    async with opened_with(dead.queue, 2) as window:
        await window.remove(await window.next_page(limit=10))
    assert (await level_of(dead.levels, 0)).oldest_at is None


@pytest.mark.integration
async def test_one_that_tells_no_time_is_there_since_it_was_first_seen(dead: FilledQueue) -> None:
    await dead.fill([OutgoingMessage(exchange="", routing_key="work", body=b"{}", headers={})])
    assert (await level_of(dead.levels, 1)).oldest_at == NOW
