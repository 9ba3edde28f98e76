"""An Oracle session that waits for the next request (spec datasources 4)."""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import trio

from fetcher.datasources.connecting import SourceConnector
from fetcher.datasources.idle_sessions import IdleSessions, SessionKey, open_idle_sessions
from fetcher.datasources.oracle.connector import OracleSource
from fetcher.datasources.oracle.names import TableNames
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.oracle.session import SETUP, Session
from fetcher.datasources.session_supply import SharedSessions
from fetcher.datasources.sessions import SessionPlaces
from fetcher.datasources.source_settings import ReadSettings
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import SourceFailure, StreamRequest
from tests.unit.datasources.oracle.fake_driver import (
    STAFF,
    Answer,
    FakeDatabase,
    a_catalogue,
    a_target,
    driver_error,
)

KEY = SessionKey(connection_id=new_connection_id(), version="1")
REQUEST = StreamRequest(config_name="ora", tables={"STAFF": ("ID",)})


@pytest.fixture
async def idle() -> AsyncIterator[IdleSessions]:
    async with open_idle_sessions() as opened:
        yield opened


def a_connector(idle: IdleSessions, statement_seconds: float = 120.0) -> SourceConnector[Session]:
    source = OracleSource(
        config_name="ora",
        target=a_target,
        names=TableNames(None, {"STAFF": ("ID",)}),
        renderer=ValueRenderer(JobOptions()),
        settings=ReadSettings(statement_seconds=statement_seconds),
    )
    return SourceConnector(source, SharedSessions(source, SessionPlaces(), idle, KEY))


async def read(connector: SourceConnector[Session]) -> None:
    stream = await connector.open_stream(REQUEST)
    try:
        while await stream.next_batch() is not None:
            pass
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()
            await connector.close()


async def test_the_snapshot_ends_and_the_next_request_sets_its_own_limits(
    monkeypatch: pytest.MonkeyPatch, idle: IdleSessions
) -> None:
    answers = [*a_catalogue(STAFF), Answer("SELECT t.", [("7",)])]
    database = FakeDatabase(answers=answers).install(monkeypatch)
    await read(a_connector(idle))
    (connection,) = database.connections
    assert connection.rollbacks == 2, "one before the snapshot, one after it"
    connection.timeouts.clear()
    await read(a_connector(idle, statement_seconds=7))
    assert database.connections == [connection]
    assert database.statements.count(SETUP) == 2
    assert set(connection.timeouts) == {7000}
    assert not connection.is_closed


async def test_a_session_whose_statement_failed_ends(
    monkeypatch: pytest.MonkeyPatch, idle: IdleSessions
) -> None:
    answers = [*a_catalogue(STAFF), Answer("SELECT t.", error=driver_error(942))]
    database = FakeDatabase(answers=answers).install(monkeypatch)
    with pytest.raises(SourceFailure):
        await read(a_connector(idle))
    assert database.connections[0].is_closed
    assert idle.count(KEY.connection_id) == 0


async def test_a_session_whose_statement_was_stopped_is_never_taken_up(
    monkeypatch: pytest.MonkeyPatch, idle: IdleSessions
) -> None:
    answers = [*a_catalogue(STAFF), Answer("SELECT t.", blocks=True)]
    database = FakeDatabase(answers=answers).install(monkeypatch)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read, a_connector(idle))
        await trio.to_thread.run_sync(database.blocked.wait)
        nursery.cancel_scope.cancel()
    assert idle.count(KEY.connection_id) == 0
    assert database.peers[0].recv(1) == b""


async def test_one_that_was_broken_meanwhile_is_replaced(
    monkeypatch: pytest.MonkeyPatch, idle: IdleSessions
) -> None:
    database = FakeDatabase(answers=a_catalogue(STAFF)).install(monkeypatch)
    await read(a_connector(idle))
    database.answers.insert(0, Answer("ALTER SESSION", error=driver_error(2396)))
    with suppress(SourceFailure):
        await read(a_connector(idle))
    assert len(database.connections) == 2
