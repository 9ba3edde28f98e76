"""Streams of MariaDB: ends, cuts, cancellation, snapshots, cells (spec datasources 11, 12)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio

from fetcher.datasources.mysql import rows as rows_module
from fetcher.datasources.mysql.fenced_packets import FENCE
from fetcher.domain.connections import Connection
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest
from tests.integration.datasources.harness import TENANT, document, engines, parsed, rows_of
from tests.integration.datasources.mariadb import (
    admin_of,
    connection_to,
    own_database,
    rows_in,
    run_sql,
)
from tests.integration.datasources.relay import Relay, relay
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

MANY = 20_000


@pytest.fixture
def database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        run_sql(
            address,
            "CREATE TABLE t (id int PRIMARY KEY, s text)",
            f"INSERT INTO t SELECT seq, repeat(seq, 40) FROM seq_1_to_{MANY}",
        )
        yield address


def sessions(address: SqlAddress) -> list[str]:
    """What the other sessions in this database do."""
    found = rows_in(
        address,
        "SELECT state FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID()",
    )
    return [str(state) for (state,) in found]


@asynccontextmanager
async def through(
    address: SqlAddress, *, cut_after: int | None = None, silent_after: int | None = None
) -> AsyncIterator[tuple[Connection, Relay]]:
    async with relay(
        address.host, address.port, cut_after=cut_after, silent_after=silent_after
    ) as link:
        yield replace(connection_to(address), host="127.0.0.1", port=link.port), link


async def test_all_rows_come_in_batches_that_fit_together(database: SqlAddress) -> None:
    async with engines() as opened:
        found = await rows_of(opened, connection_to(database), "t", ["id", "s"])
    assert [(row["id"], row["s"]) for row in found] == [
        (i, str(i) * 40) for i in range(1, MANY + 1)
    ]
    await eventually(lambda: not sessions(database), deadline_seconds=2)


async def test_tables_without_rows_are_empty_lists(database: SqlAddress) -> None:
    run_sql(database, "CREATE TABLE a (x int)", "CREATE TABLE z (x int)")
    async with engines() as opened:
        data = await document(
            opened,
            connection_to(database),
            {"a": ["x"], "t": ["id"], "z": ["x"]},
            filters={"t": {"id": {"eq": [7]}}},
        )
    assert data == b'{"src":{"a":[],"t":[{"id":7}],"z":[]}}'


async def test_all_tables_are_read_in_one_snapshot(database: SqlAddress) -> None:
    run_sql(database, "CREATE TABLE u (x int)")
    connection = connection_to(database)
    fields = {"t": ("id",), "u": ("x",)}
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), {"src": fields})
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": fields})
        )
        pieces: list[bytes] = []

        async def write(piece: bytes | memoryview) -> None:
            if not pieces:
                run_sql(database, "INSERT INTO u VALUES (1)", "DELETE FROM t")
            pieces.append(bytes(piece))

        await engine.stream_extraction(plan, write)
    tables = parsed(b"".join(pieces))
    assert len(tables["t"]) == MANY
    assert tables["u"] == []


@pytest.mark.parametrize("share", [0.0005, 0.1, 0.5, 0.6, 0.95, 0.999999])
async def test_a_cut_anywhere_is_never_a_shorter_success(
    database: SqlAddress, share: float
) -> None:
    run_sql(database, "CREATE TABLE few AS SELECT * FROM t WHERE id <= 2000")
    async with engines(keeps_sessions=False) as opened:
        async with through(database) as (connection, link):
            await document(opened, connection, {"few": ["id", "s"]})
            # all connections: the one that planned, and the one that read
            total = link.forwarded
        async with through(database, cut_after=int(total * share)) as (connection, _):
            with pytest.raises(EngineError):
                await document(opened, connection, {"few": ["id", "s"]})


async def test_connection_cut_amid_the_rows_names_table_and_reason(database: SqlAddress) -> None:
    async with engines() as opened, through(database, cut_after=2_000_000) as (connection, link):
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"t": ["id", "s"]})
        assert link.reached.is_set()
    found = (caught.value.stage, caught.value.reason, caught.value.table)
    assert found == ("rows", "reset", "t")


async def test_silence_amid_the_rows_ends_by_its_deadline(
    database: SqlAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "NO_PROGRESS_SECONDS", 0.3)
    async with engines() as opened, through(database, silent_after=400_000) as (connection, link):
        with trio.fail_after(10), pytest.raises(EngineError) as caught:
            await document(opened, connection, {"t": ["id", "s"]})
        assert link.reached.is_set()
    assert (caught.value.stage, caught.value.reason) == ("rows", "timeout")


async def test_server_that_ends_the_session_amid_the_rows_fails(database: SqlAddress) -> None:
    run_sql(database, "INSERT INTO t SELECT seq, repeat('x', 1000) FROM seq_20001_to_60000")
    connection = connection_to(database)
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), {"src": {"t": ("s",)}})
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": {"t": ["s"]}})
        )
        killed = False

        async def write(piece: bytes | memoryview) -> None:
            nonlocal killed
            if not killed:
                killed = True
                for (number,) in rows_in(
                    database,
                    "SELECT id FROM information_schema.processlist"
                    " WHERE db = DATABASE() AND id <> CONNECTION_ID()",
                ):
                    run_sql(database, f"KILL {number}")

        with pytest.raises(EngineError) as caught:
            await engine.stream_extraction(plan, write)
    assert caught.value.stage == "rows"
    assert caught.value.reason in ("shut_down", "reset", "interrupted")


async def test_cancelled_while_another_session_holds_the_table(database: SqlAddress) -> None:
    connection = connection_to(database)
    with admin_of(database) as holder, holder.cursor() as cursor:
        async with engines() as opened:
            engine = opened.engine_for([connection], JobOptions(), {"src": {"t": ("id",)}})
            plan = await engine.plan_extraction(
                TENANT, ExtractionRequest(mapped_fields={"src": {"t": ["id"]}})
            )
            cursor.execute("LOCK TABLES t WRITE")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(engine.execute_extraction, plan)
                await eventually(
                    lambda: any("lock" in state for state in sessions(database)),
                    deadline_seconds=10,
                    what="the query waits for the lock",
                )
                asked = trio.current_time()
                nursery.cancel_scope.cancel()
            assert trio.current_time() - asked < 2
            # the holder is a session of this database too
            await eventually(lambda: len(sessions(database)) == 1, deadline_seconds=2)


async def test_cancelled_while_the_store_stalls(database: SqlAddress) -> None:
    run_sql(database, "INSERT INTO t SELECT seq, repeat('x', 1000) FROM seq_20001_to_80000")
    connection = connection_to(database)
    stalled = trio.Event()

    async def write(piece: bytes | memoryview) -> None:
        stalled.set()
        await trio.sleep_forever()

    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), {"src": {"t": ("s",)}})
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": {"t": ["s"]}})
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.stream_extraction, plan, write)
            await stalled.wait()
            asked = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - asked < 3
        await eventually(lambda: not sessions(database), deadline_seconds=2)


async def test_cancelled_behind_a_silent_network_returns_within_its_bound(
    database: SqlAddress,
) -> None:
    async with engines() as opened, through(database, silent_after=300_000) as (connection, link):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(document, opened, connection, {"t": ["id", "s"]})
            await link.reached.wait()
            asked = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - asked < 3


async def test_lock_that_is_not_given_ends_by_the_servers_own_timeout(
    database: SqlAddress,
) -> None:
    connection = connection_to(database)
    with admin_of(database) as holder, holder.cursor() as cursor:
        async with engines(lock_timeout_seconds=0.2) as opened:
            cursor.execute("LOCK TABLES t WRITE")
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t": ["id"]})
    assert (caught.value.reason, caught.value.table) == ("lock_timeout", "t")


async def test_statement_that_takes_too_long_is_ended_by_the_server(
    database: SqlAddress,
) -> None:
    run_sql(
        database,
        "CREATE TABLE big (s varchar(100))",
        "INSERT INTO big SELECT repeat('a', 100) FROM seq_1_to_200000",
    )
    async with engines(query_timeout_seconds=0.1) as opened:
        with pytest.raises(EngineError) as caught:
            await document(
                opened,
                connection_to(database),
                {"big": ["s"]},
                filters={"big": {"s": {"like": ["%a%a%a%a%a%a%b"] * 20}}},
            )
    assert caught.value.category is ErrorCategory.TIMEOUT
    assert caught.value.reason == "timeout"


async def test_cell_that_is_too_large_fails_with_its_column(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE large (id int, small text, big text, raw blob)",
        "INSERT INTO large VALUES (1, 'x', repeat('y', 900), NULL)",
        "INSERT INTO large VALUES (2, repeat('x', 900), repeat('y', 900), NULL)",
    )
    connection = connection_to(database)
    found = []
    async with engines(max_cell_bytes=1000) as opened:
        # a row may be larger than a cell
        assert len(await rows_of(opened, connection, "large", ["*"])) == 2
        for size in (900, 1100):
            # too large as base64, and too large as it is stored
            run_sql(
                database,
                "DELETE FROM large WHERE id = 3",
                f"INSERT INTO large VALUES (3, 'x', 'y', repeat('\\0', {size}))",
            )
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"large": ["*"]})
            error = caught.value
            found.append((error.stage, error.reason, error.table, error.column))
    assert found == [("rows", "cell_too_large", "large", "raw")] * 2


async def test_rows_beyond_the_servers_packet_are_refused_and_never_null(
    database: SqlAddress,
) -> None:
    run_sql(
        database,
        "CREATE TABLE large (id int, s longtext)",
        "INSERT INTO large VALUES (1, repeat('\"', 9000000))",
    )
    async with engines(max_cell_bytes=64 * 1024 * 1024) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, connection_to(database), {"large": ["id", "s"]})
    assert (caught.value.reason, caught.value.column) == ("cell_too_large", "s")


async def test_rows_in_several_packets_come_whole(database: SqlAddress) -> None:
    """A packet holds 16 MiB - 1; the server's largest result is one byte more."""
    size = 16 * 1024 * 1024 - len('{"s":""}') - 2 * len(FENCE) - 1
    run_sql(
        database,
        "CREATE TABLE large (id int, s longtext)",
        f"INSERT INTO large VALUES (1, repeat('x', {size})), (2, repeat('y', {size + 1})), (3, '')",
    )
    async with engines(max_cell_bytes=64 * 1024 * 1024) as opened:
        found = await rows_of(opened, connection_to(database), "large", ["s"])
    assert [(row["s"][:1], len(row["s"])) for row in found] == [
        ("x", size),
        ("y", size + 1),
        ("", 0),
    ]
