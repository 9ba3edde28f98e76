"""How long a session may wait for work, and that none outlives its owner."""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.datasources.idle_sessions import (
    IDLE_SECONDS,
    LIFETIME_SECONDS,
    MAX_IDLE,
    MAX_IDLE_IN_ALL,
    IdlePeers,
    open_idle_sessions,
)
from fetcher.domain.ids import new_connection_id
from tests.unit.datasources.fake_source import KEY, FakeSession


async def test_an_idle_session_ends_after_a_minute(autojump_clock: MockClock) -> None:
    session = FakeSession()
    async with open_idle_sessions() as idle:
        assert idle.keep(session, KEY, opened_at=trio.current_time())
        await trio.sleep(IDLE_SECONDS - 0.001)
        assert (session.ends, idle.count(KEY.connection_id)) == (0, 1)
        await trio.sleep(0.002)
        assert (session.ends, idle.count(KEY.connection_id)) == (1, 0)


async def test_a_session_ends_five_minutes_after_it_was_opened(autojump_clock: MockClock) -> None:
    session = FakeSession()
    async with open_idle_sessions() as idle:
        opened_at = trio.current_time()
        await trio.sleep(LIFETIME_SECONDS - 10)
        assert idle.keep(session, KEY, opened_at=opened_at)
        await trio.sleep(9.999)
        assert session.ends == 0
        await trio.sleep(0.002)
        assert session.ends == 1


async def test_the_one_that_ends_first_is_not_forgotten_for_a_younger_one(
    autojump_clock: MockClock,
) -> None:
    older, younger = FakeSession(), FakeSession()
    async with open_idle_sessions() as idle:
        assert idle.keep(older, KEY, opened_at=trio.current_time())
        await trio.sleep(30)
        assert idle.keep(younger, KEY, opened_at=trio.current_time())
        await trio.sleep(31)
        assert (older.ends, younger.ends) == (1, 0)
        await trio.sleep(30)
        assert (older.ends, younger.ends) == (1, 1)


async def test_the_last_one_used_is_taken_first() -> None:
    sessions = [FakeSession() for _ in range(3)]
    async with open_idle_sessions() as idle:
        for session in sessions:
            assert idle.keep(session, KEY, opened_at=trio.current_time())
        taken = [idle.take(KEY) for _ in range(4)]
        assert [each.session if each else None for each in taken] == [*reversed(sessions), None]


async def test_no_more_than_ten_of_a_connection_wait() -> None:
    async with open_idle_sessions() as idle:
        now = trio.current_time()
        kept = [idle.keep(FakeSession(), KEY, opened_at=now) for _ in range(MAX_IDLE + 1)]
        assert kept == [True] * MAX_IDLE + [False]


async def test_no_more_than_a_hundred_wait_in_a_process_and_the_oldest_goes_first(
    autojump_clock: MockClock,
) -> None:
    keys = [replace(KEY, connection_id=new_connection_id()) for _ in range(MAX_IDLE_IN_ALL // 5)]
    sessions = [FakeSession() for _ in range(MAX_IDLE_IN_ALL)]
    async with open_idle_sessions() as idle:
        for number, session in enumerate(sessions):
            key = keys[number % len(keys)]
            assert idle.keep(session, key, opened_at=trio.current_time())
            await trio.sleep(0.1)
        assert [session.ends for session in sessions] == [0] * MAX_IDLE_IN_ALL
        taken = idle.take(keys[0])
        assert taken is not None
        assert idle.keep(taken.session, keys[0], opened_at=taken.opened_at)
        await wait_all_tasks_blocked()
        assert sum(session.ends for session in sessions) == 0, "one came for one that went"
        for ended in (1, 2):
            newest = FakeSession()
            assert idle.keep(newest, KEY, opened_at=trio.current_time())
            await wait_all_tasks_blocked()
            assert newest.ends == 0
            assert [session.ends for session in sessions] == [1] * ended + [0] * (
                MAX_IDLE_IN_ALL - ended
            )
        assert idle.count(KEY.connection_id) == 2
        assert [idle.count(key.connection_id) for key in keys] == [4, 4] + [5] * (len(keys) - 2)


async def test_none_outlives_its_owner_and_none_is_kept_afterwards() -> None:
    sessions = [FakeSession() for _ in range(3)]
    async with open_idle_sessions() as idle:
        for session in sessions:
            idle.keep(session, KEY, opened_at=trio.current_time())
    assert [session.ends for session in sessions] == [1, 1, 1]
    assert not idle.keep(FakeSession(), KEY, opened_at=trio.current_time())


async def test_they_end_together_also_when_the_owner_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    sessions = [FakeSession(slow_seconds=2) for _ in range(5)]
    with trio.move_on_after(1):
        async with open_idle_sessions() as idle:
            for session in sessions:
                idle.keep(session, KEY, opened_at=trio.current_time())
            await trio.sleep_forever()
    assert trio.current_time() == 3
    assert [session.ends for session in sessions] == [1] * 5


async def test_what_is_ending_when_the_owner_goes_is_waited_for(autojump_clock: MockClock) -> None:
    slow = FakeSession(slow_seconds=1.5)
    async with open_idle_sessions() as idle:
        idle.keep(slow, KEY, opened_at=trio.current_time())
        idle.forget(KEY.connection_id)
        await wait_all_tasks_blocked()
        assert slow.ends == 0
    assert slow.ends == 1


async def test_a_failure_inside_leaves_as_it_is() -> None:
    session = FakeSession()

    async def fail() -> None:
        async with open_idle_sessions() as idle:
            idle.keep(session, KEY, opened_at=trio.current_time())
            raise LookupError("inside")

    with pytest.raises(LookupError) as caught:
        await fail()
    assert caught.value.args == ("inside",)
    assert session.ends == 1


async def test_nothing_of_a_record_stands_in_a_repr() -> None:
    async with open_idle_sessions() as idle:
        idle.keep(FakeSession(), replace(KEY, version="7f"), opened_at=trio.current_time())
        taken = idle.take(replace(KEY, version="7f"))
    assert "FakeSession" not in repr(taken)


async def test_tenants_keep_apart_what_waits_and_share_one_limit(
    autojump_clock: MockClock,
) -> None:
    peers = IdlePeers()
    async with open_idle_sessions(peers) as one, open_idle_sessions(peers) as other:
        first, mine = FakeSession(), FakeSession()
        now = trio.current_time()
        assert one.keep(first, KEY, opened_at=now)
        assert other.take(KEY) is None
        await trio.sleep(1)
        now = trio.current_time()
        for _ in range(MAX_IDLE_IN_ALL // 10):
            connection = replace(KEY, connection_id=new_connection_id())
            for _ in range(10):
                assert other.keep(FakeSession(), connection, opened_at=now)
        await wait_all_tasks_blocked()
        assert (first.ends, one.total, other.total) == (0, 1, MAX_IDLE_IN_ALL - 1), (
            "who has the most gives way"
        )
        await trio.sleep(1)
        assert one.keep(mine, KEY, opened_at=trio.current_time())
        assert (one.total, other.total) == (2, MAX_IDLE_IN_ALL - 2)
    assert peers.members == []
    assert mine.ends == 1
