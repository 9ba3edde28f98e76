"""The places of a connection (spec datasources, section 4)."""

import gc

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.datasources.sessions import MAX_SESSIONS, SessionLimits
from fetcher.domain.ids import new_connection_id
from fetcher_engine import SourceFailure


async def test_the_twenty_sixth_session_waits_for_a_place() -> None:
    places = SessionLimits().places(new_connection_id())
    borrowers = [object() for _ in range(MAX_SESSIONS + 1)]
    for borrower in borrowers[:-1]:
        await places.take(borrower)
    taken = trio.Event()

    async def take_the_last() -> None:
        await places.take(borrowers[-1])
        taken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_the_last)
        await wait_all_tasks_blocked()
        assert not taken.is_set()
        places.give_back(borrowers[0])
        await taken.wait()


async def test_no_place_within_ten_seconds_is_a_failure(autojump_clock: MockClock) -> None:
    places = SessionLimits().places(new_connection_id())
    for _ in range(MAX_SESSIONS):
        await places.take(object())
    with pytest.raises(SourceFailure) as caught:
        await places.take(object())
    assert trio.current_time() == 10
    assert (caught.value.stage, caught.value.reason) == ("session", "too_many_sessions")


async def test_connections_share_their_places_over_requests_and_with_nobody_else() -> None:
    limits = SessionLimits()
    one, other = new_connection_id(), new_connection_id()
    places = limits.places(one)
    assert limits.places(one) is places
    assert limits.places(other) is not places
    del places
    gc.collect()
    assert len(limits._places) == 0


async def test_a_type_of_source_may_have_its_own_number_of_places(
    autojump_clock: MockClock,
) -> None:
    places = SessionLimits().places(new_connection_id(), most=2)
    await places.take(object())
    await places.take(object())
    with pytest.raises(SourceFailure):
        await places.take(object())
