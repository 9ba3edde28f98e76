"""A statement that is given up is stopped on the server, then the connection is ended."""

import pytest
import trio

from fetcher.datasources.oracle import session as sessions
from fetcher_engine import StreamRequest
from tests.unit.datasources.oracle.fake_driver import (
    STAFF,
    Answer,
    FakeDatabase,
    a_catalogue,
    a_connector,
)


async def a_blocked_read(database: FakeDatabase) -> None:
    connector = a_connector({"STAFF": ("ID",)})
    stream = await connector.open_stream(
        StreamRequest(config_name="ora", tables={"STAFF": ("ID",)})
    )
    try:
        await stream.next_batch()
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()
            await connector.close()


async def cancelled_in_mid_statement(database: FakeDatabase) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_blocked_read, database)
        await trio.to_thread.run_sync(database.blocked.wait)
        nursery.cancel_scope.cancel()


async def test_cancel_goes_to_the_server_from_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [*a_catalogue(STAFF), Answer("SELECT t.", blocks=True)]
    database = FakeDatabase(answers=answers).install(monkeypatch)
    await cancelled_in_mid_statement(database)
    assert database.cancelled_in == "oracle-cancel"
    assert not database.connections[0].is_closed, "a stopped session is not spoken to"
    assert database.peers[0].recv(1) == b""


async def test_a_server_that_does_not_heed_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's read returns when its socket is shut."""
    monkeypatch.setattr(sessions, "CANCEL_SECONDS", 0.05)
    answers = [*a_catalogue(STAFF), Answer("SELECT t.", blocks=True)]
    database = FakeDatabase(answers=answers, heeds_cancel=False).install(monkeypatch)

    async def driver_reads() -> None:
        await trio.to_thread.run_sync(database.blocked.wait)
        assert await trio.to_thread.run_sync(database.peers[0].recv, 1) == b""
        database.released.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver_reads)
        await cancelled_in_mid_statement(database)
    assert database.cancelled_in == "oracle-cancel"


async def test_closing_is_short_when_the_server_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "CANCEL_SECONDS", 0.05)
    database = FakeDatabase().install(monkeypatch)
    connector = a_connector()
    await connector.test_connection()
    monkeypatch.setattr(database.connections[0], "close", lambda: database.peers[0].recv(1))
    await connector.close()
