"""Transactions in threads: locks, deadlines, cancellation, and what of errors is shown."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from fetcher.adapters.sqlite import database as database_module
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.probe import record_store_probe
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import ProbeStatus

ENDLESS = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n
"""


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(path, busy_seconds=0.05)
    await opened.write(lambda session: session.change("CREATE TABLE t (x)", {}))
    yield opened
    await opened.aclose()


@pytest.fixture
def other(database: Database, path: Path) -> Iterator[sqlite3.Connection]:
    """Another process: a shell, a backup."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def put(session: Session) -> int:
    return session.change("INSERT INTO t VALUES (1)", {})


def count(session: Session) -> int:
    found: int = session.rows("SELECT count(*) FROM t")[0][0]
    return found


async def test_write_waits_a_bounded_time_for_another_writer_and_reads_go_on(
    database: Database, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t VALUES (2)")
    with trio.fail_after(10), pytest.raises(PortUnavailable) as failed:
        await database.write(put)
    assert str(failed.value) == "the record store failed (SQLITE_BUSY)"
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert await database.read(count) == 0
    other.execute("COMMIT")
    await database.write(put)
    assert await database.read(count) == 2


async def test_nobody_writes_between_a_look_and_the_write_that_follows(
    database: Database, path: Path
) -> None:
    def look_and_put(session: Session) -> int:
        seen = count(session)
        with (
            closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("INSERT INTO t VALUES (2)")
        put(session)
        return seen

    assert await database.write(look_and_put) == 0
    assert await database.read(count) == 1


async def test_what_work_raises_undoes_it(database: Database) -> None:
    def put_and_fail(session: Session) -> None:
        put(session)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await database.write(put_and_fail)
    assert await database.read(count) == 0
    assert await database.write(put) == 1


async def test_readers_cannot_write(database: Database) -> None:
    with pytest.raises(PortUnavailable, match="SQLITE_READONLY"):
        await database.read(put)
    assert await database.read(count) == 0


async def test_all_of_a_transaction_has_one_time(database: Database) -> None:
    def times(session: Session) -> tuple[int, int]:
        before = session.now_ms
        session.rows(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n LIMIT 99999)"
            " SELECT max(i) FROM n"
        )
        return before, session.now_ms

    first, last = await database.write(times)
    assert first == last
    assert (await database.read(times))[0] >= first


async def test_clock_of_the_store_is_the_machines(database: Database) -> None:
    before = sqlite_now_ms()
    found = await database.read(lambda session: session.now_ms)
    assert before - 1 <= found <= sqlite_now_ms() + 1


def sqlite_now_ms() -> int:
    with closing(sqlite3.connect(":memory:")) as memory:
        seconds = memory.execute("SELECT strftime('%s', 'now'), strftime('%f', 'now')").fetchone()
    return int(seconds[0]) * 1000 + int(seconds[1].partition(".")[2])


async def test_transaction_that_computes_too_long_is_stopped(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "RUN_SECONDS", 0.05)
    for run in (database.read, database.write):
        with trio.fail_after(10), pytest.raises(PortUnavailable, match="SQLITE_INTERRUPT"):
            await run(lambda session: session.rows(ENDLESS))
    assert await database.write(put) == 1


async def test_cancelled_read_is_interrupted_and_its_connection_serves_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "RUN_SECONDS", 60)
    for _ in range(database_module.READERS + 1):
        begun = threading.Event()

        def read_for_ever(session: Session, begun: threading.Event = begun) -> None:
            begun.set()
            session.rows(ENDLESS)

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(database.read, read_for_ever)
                await trio.to_thread.run_sync(begun.wait, 10)
                nursery.cancel_scope.cancel()
    assert await database.read(count) == 0


async def test_write_that_has_begun_is_finished_when_its_caller_is_cancelled(
    database: Database,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def put_slowly(session: Session) -> int:
        begun.set()
        go_on.wait(10)
        return put(session)

    answers: list[int] = []

    async def write() -> None:
        answers.append(await database.write(put_slowly))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.to_thread.run_sync(begun.wait, 10)
        nursery.cancel_scope.cancel()
        go_on.set()
    assert answers == [1]
    assert await database.read(count) == 1


async def test_write_that_waits_for_its_turn_is_dropped_when_its_caller_is_cancelled(
    database: Database,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(session: Session) -> None:
        begun.set()
        go_on.wait(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.write, hold)
        await trio.to_thread.run_sync(begun.wait, 10)
        with trio.move_on_after(0.05) as waiting:
            await database.write(put)
        assert waiting.cancelled_caught
        go_on.set()
    assert await database.read(count) == 0


async def test_write_that_gets_no_turn_in_time_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "QUEUE_SECONDS", 0.05)
    begun, go_on = threading.Event(), threading.Event()

    def hold(session: Session) -> None:
        begun.set()
        go_on.wait(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.write, hold)
        await trio.to_thread.run_sync(begun.wait, 10)
        with pytest.raises(PortUnavailable, match="busy"):
            await database.write(put)
        go_on.set()
    assert await database.read(count) == 0


async def test_probe_tells_whether_the_store_answers(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = record_store_probe(database)
    assert probe.name == "record_store"
    found = await probe.check()
    assert (found.status, found.error, found.tls) == (ProbeStatus.UP, None, None)
    assert 0 <= found.latency_ms < 2000

    async def fail(work: object) -> None:
        raise PortUnavailable("the record store failed (SQLITE_IOERR)")

    monkeypatch.setattr(Database, "read", staticmethod(fail))
    found = await probe.check()
    assert (found.status, found.error) == (ProbeStatus.DOWN, "record store not readable")
