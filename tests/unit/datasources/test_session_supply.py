"""Which session a job gets, and what becomes of it (spec datasources 4, 12.3)."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.datasources.connecting import SourceConnector
from fetcher.datasources.idle_sessions import IdleSessions, SessionKey, open_idle_sessions
from fetcher.domain.ids import new_connection_id
from fetcher_engine import SourceFailure, Stage
from tests.unit.datasources.fake_source import (
    KEY,
    REQUEST,
    Connector,
    FakeSession,
    FakeSource,
    everything,
    shared,
    some_places,
)


@pytest.fixture
async def idle() -> AsyncIterator[IdleSessions]:
    async with open_idle_sessions() as opened:
        yield opened


def connector_of(
    source: FakeSource, idle: IdleSessions, *, key: SessionKey = KEY, tests_anew: bool = False
) -> Connector:
    return SourceConnector(
        source, shared(source, some_places(25), idle, key), tests_anew=tests_anew
    )


async def used(connector: Connector) -> None:
    await connector.test_connection()
    await connector.close()


async def test_the_next_job_takes_the_session_up_again(idle: IdleSessions) -> None:
    source = FakeSource()
    await everything(connector_of(source, idle))
    assert source.steps[-1] == "rest"
    source.steps.clear()
    await used(connector_of(source, idle))
    assert source.steps == ["resume", "ping", "rest"]
    assert [session.ends for session in source.sessions] == [0]


async def test_a_test_that_must_prove_the_login_takes_none_up(idle: IdleSessions) -> None:
    source = FakeSource()
    await used(connector_of(source, idle))
    await used(connector_of(source, idle, tests_anew=True))
    assert source.steps.count("open") == 2
    assert idle.count(KEY.connection_id) == 2


@pytest.mark.parametrize("step", ["ping", "discover", "readers", "start a", "next b"])
async def test_a_failed_session_never_waits(idle: IdleSessions, step: str) -> None:
    source = FakeSource(fails_at=step)
    with pytest.raises(SourceFailure):
        await everything(connector_of(source, idle))
    assert source.sessions[0].ends == 1
    assert idle.count(KEY.connection_id) == 0
    assert "rest" not in source.steps


@pytest.mark.parametrize("step", ["ping", "discover", "readers", "start a", "next b", "rest"])
async def test_a_cancelled_session_never_waits(
    autojump_clock: MockClock, idle: IdleSessions, step: str
) -> None:
    source = FakeSource(hangs_at=step)
    with trio.move_on_after(1):
        await everything(connector_of(source, idle))
    assert source.sessions[0].ends == 1
    assert idle.count(KEY.connection_id) == 0


async def test_a_stream_that_was_left_before_its_end_is_not_taken_up(idle: IdleSessions) -> None:
    source = FakeSource()
    connector = connector_of(source, idle)
    stream = await connector.open_stream(REQUEST)
    await stream.next_batch()
    await stream.aclose()
    await connector.close()
    assert source.sessions[0].ends == 1
    assert idle.count(KEY.connection_id) == 0


class FullServer(FakeSource):
    """It has room for so many sessions, whoever they are for."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    async def open(self) -> FakeSession:
        if sum(not session.ends for session in self.sessions) >= self.room:
            raise SourceFailure(Stage.AUTH, "too_many_connections")
        return await super().open()


async def test_sessions_that_wait_take_no_room_from_other_connections(idle: IdleSessions) -> None:
    server = FullServer(room=2)
    for _ in range(5):
        own = replace(KEY, connection_id=new_connection_id())
        await used(connector_of(server, idle, key=own))
        assert idle.count(own.connection_id) == 1
    assert [session.ends for session in server.sessions] == [1, 1, 1, 1, 0]


async def test_a_server_that_is_full_of_others_stays_full(idle: IdleSessions) -> None:
    server, places = FullServer(room=0), some_places()
    other = replace(KEY, connection_id=new_connection_id())
    for waiting in (False, True):
        if waiting:
            await used(connector_of(FakeSource(), idle, key=other))
        with pytest.raises(SourceFailure) as caught:
            await used(SourceConnector(server, shared(server, places, idle)))
        assert caught.value.reason == "too_many_connections"
        assert places.taken == 0
    assert idle.count(other.connection_id) == 0


async def test_what_can_not_be_put_to_rest_ends(idle: IdleSessions) -> None:
    source = FakeSource(fails_at="rest")
    await everything(connector_of(source, idle))
    assert source.sessions[0].ends == 1
    assert idle.count(KEY.connection_id) == 0


async def test_a_server_that_is_silent_when_its_session_is_put_to_rest_holds_nobody_up(
    autojump_clock: MockClock, idle: IdleSessions
) -> None:
    source, places = FakeSource(hangs_at="rest"), some_places()
    await everything(SourceConnector(source, shared(source, places, idle)))
    assert trio.current_time() == 2
    assert source.sessions[0].ends == 1
    assert places.taken == 0


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_a_broken_session_is_replaced_quietly_and_those_beside_it_end(
    autojump_clock: MockClock, idle: IdleSessions, how: str
) -> None:
    source = FakeSource()
    first, second = connector_of(source, idle), connector_of(source, idle)
    await first.test_connection()
    await second.test_connection()
    await first.close()
    await second.close()
    if how == "fails":
        source.fails_at = "resume"
    else:
        source.hangs_at = "resume"
    third = connector_of(source, idle)
    await third.test_connection()
    await wait_all_tasks_blocked()
    assert [session.ends for session in source.sessions] == [1, 1, 0]
    assert trio.current_time() == (0 if how == "fails" else 2)
    await third.close()


async def test_cancelled_while_it_asks_whether_the_session_lives_it_keeps_no_place(
    autojump_clock: MockClock, idle: IdleSessions
) -> None:
    source, places = FakeSource(hangs_at="resume"), some_places()
    await used(SourceConnector(source, shared(source, places, idle)))
    with trio.move_on_after(1) as scope:
        await SourceConnector(source, shared(source, places, idle)).test_connection()
    assert scope.cancelled_caught
    assert source.sessions[0].ends == 1
    assert places.taken == 0


async def test_a_changed_connection_never_gets_an_old_session(idle: IdleSessions) -> None:
    source = FakeSource()
    await used(connector_of(source, idle))
    await used(connector_of(source, idle, key=replace(KEY, version="2")))
    await wait_all_tasks_blocked()
    assert "resume" not in source.steps
    assert [session.ends for session in source.sessions] == [1, 0]


async def test_two_connections_share_no_session(idle: IdleSessions) -> None:
    source = FakeSource()
    other = SessionKey(connection_id=new_connection_id(), version=KEY.version)
    await used(connector_of(source, idle))
    await used(connector_of(source, idle, key=other))
    assert "resume" not in source.steps
    assert [session.ends for session in source.sessions] == [0, 0]


async def test_idle_sessions_count_among_those_that_a_connection_may_have(
    idle: IdleSessions,
) -> None:
    source, places = FakeSource(), some_places(2)
    connectors = [SourceConnector(source, shared(source, places, idle)) for _ in range(2)]
    for each in connectors:
        await each.test_connection()
    for each in connectors:
        await each.close()
    assert idle.count(KEY.connection_id) == 2
    anew = SourceConnector(source, shared(source, places, idle), tests_anew=True)
    await anew.test_connection()
    assert idle.count(KEY.connection_id) == 1
    assert sum(not session.ends for session in source.sessions) == 2
    await anew.close()


async def test_who_waits_for_a_place_gets_the_session_that_is_given_back(
    idle: IdleSessions,
) -> None:
    source, places = FakeSource(), some_places(1)
    first, second = (SourceConnector(source, shared(source, places, idle)) for _ in range(2))
    await first.test_connection()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(used, second)
        await wait_all_tasks_blocked()
        assert source.steps == ["open", "ping"]
        await first.close()
    assert source.steps == ["open", "ping", "rest", "resume", "ping", "rest"]


async def test_an_old_session_is_not_kept(autojump_clock: MockClock, idle: IdleSessions) -> None:
    source = FakeSource()
    connector = connector_of(source, idle)
    await connector.test_connection()
    await trio.sleep(300)
    await connector.close()
    assert "rest" not in source.steps
    assert source.sessions[0].ends == 1


async def test_its_age_goes_on_while_it_is_used_again(
    autojump_clock: MockClock, idle: IdleSessions
) -> None:
    source = FakeSource()
    for _ in range(6):
        await used(connector_of(source, idle))
        await trio.sleep(50)
    await wait_all_tasks_blocked()
    assert source.steps.count("open") == 1
    assert source.sessions[0].ends == 1
    await used(connector_of(source, idle))
    assert source.steps.count("open") == 2


async def test_without_idle_sessions_each_ends_with_its_operation() -> None:
    source, places = FakeSource(), some_places()
    await everything(SourceConnector(source, shared(source, places)))
    assert "rest" not in source.steps
    assert [session.ends for session in source.sessions] == [1]


async def test_a_slow_end_of_the_oldest_is_waited_for(
    autojump_clock: MockClock, idle: IdleSessions
) -> None:
    source, places = FakeSource(), some_places(1)
    slow = FakeSession(slow_seconds=1)
    assert idle.keep(slow, replace(KEY), opened_at=trio.current_time())
    connector = SourceConnector(source, shared(source, places, idle), tests_anew=True)
    await connector.test_connection()
    assert slow.ends == 1
    assert trio.current_time() == 1
    await connector.close()
