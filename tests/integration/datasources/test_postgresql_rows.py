"""Streams of PostgreSQL: ends, cuts, cancellation, snapshots, cells (spec datasources 11, 12)."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest
import trio
from psycopg import sql

from fetcher.datasources.postgresql import rows as rows_module
from fetcher.domain.connections import Connection
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ExtractionRequest
from tests.integration.datasources.harness import (
    TENANT,
    connection_to,
    document,
    engines,
    parsed,
    rows_of,
    run_sql,
)
from tests.integration.datasources.relay import Relay, relay
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

MANY = 20_000


@pytest.fixture
def database(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    address = postgres_database()
    run_sql(
        address,
        "CREATE TABLE t (id int PRIMARY KEY, s text)",
        f"INSERT INTO t SELECT i, repeat(i::text, 40) FROM generate_series(1, {MANY}) i",
    )
    return address


def sessions(address: SqlAddress) -> list[tuple[str, str | None]]:
    """What our sessions in this database do: state, and what they wait for."""
    with psycopg.connect(address.conninfo, autocommit=True) as admin:
        return admin.execute(
            "SELECT state, wait_event_type FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'fetcher'"
        ).fetchall()


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
    assert sessions(database) == []


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


async def test_what_the_source_runs_for_us_cannot_write(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE u (x int)",
        "CREATE FUNCTION sneak(int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS"
        " 'BEGIN INSERT INTO public.u VALUES (1); RETURN true; END'",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "DROP ROLE IF EXISTS fetcher_src_sneaky",
        "CREATE ROLE fetcher_src_sneaky LOGIN",
        "GRANT SELECT ON t TO fetcher_src_sneaky",
        "CREATE POLICY p ON t USING (sneak(id))",
    )
    try:
        connection = replace(connection_to(database), username="fetcher_src_sneaky")
        async with engines() as opened:
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t": ["id"]})
            assert await rows_of(opened, connection_to(database), "u", ["x"]) == []
    finally:
        run_sql(database, "DROP OWNED BY fetcher_src_sneaky", "DROP ROLE fetcher_src_sneaky")
    assert (caught.value.stage, caught.value.reason) == ("rows", "forbidden")


async def test_connection_cut_amid_the_rows_fails(database: SqlAddress) -> None:
    async with engines() as opened:
        whole = len(await document(opened, connection_to(database), {"t": ["id", "s"]}))
        async with through(database, cut_after=whole * 6 // 10) as (connection, link):
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t": ["id", "s"]})
            assert link.reached.is_set()
    found = (caught.value.stage, caught.value.reason, caught.value.table)
    assert found == ("rows", "reset", "t")


@pytest.mark.parametrize("share", [0.0005, 0.1, 0.95, 0.999999])
async def test_a_cut_anywhere_is_never_a_shorter_success(
    database: SqlAddress, share: float
) -> None:
    async with engines(keeps_sessions=False) as opened:
        async with through(database) as (connection, link):
            await document(opened, connection, {"t": ["id", "s"]})
            # two connections: one that planned, one that read
            total = link.forwarded
        async with through(database, cut_after=int(total * share)) as (connection, _):
            with pytest.raises(EngineError):
                await document(opened, connection, {"t": ["id", "s"]})


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
    connection = connection_to(database)
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), {"src": {"t": ("s",)}})
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": {"t": ["s"]}})
        )
        run_sql(
            database,
            "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(20001, 60000) i",
        )
        killed = False

        async def write(piece: bytes | memoryview) -> None:
            nonlocal killed
            if not killed:
                killed = True
                run_sql(
                    database,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                    " datname = current_database() AND application_name = 'fetcher'",
                )

        with pytest.raises(EngineError) as caught:
            await engine.stream_extraction(plan, write)
    assert caught.value.stage == "rows"
    assert caught.value.reason in ("shut_down", "reset")


async def test_cancelled_while_another_session_holds_the_table(database: SqlAddress) -> None:
    connection = connection_to(database)
    with psycopg.connect(database.conninfo) as holder:
        async with engines() as opened:
            engine = opened.engine_for([connection], JobOptions(), {"src": {"t": ("id",)}})
            plan = await engine.plan_extraction(
                TENANT, ExtractionRequest(mapped_fields={"src": {"t": ["id"]}})
            )
            holder.execute("LOCK TABLE t")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(engine.execute_extraction, plan)
                await eventually(
                    lambda: ("active", "Lock") in sessions(database),
                    deadline_seconds=10,
                    what="the query waits for the lock",
                )
                asked = trio.current_time()
                nursery.cancel_scope.cancel()
            assert trio.current_time() - asked < 2
            await eventually(lambda: not sessions(database), deadline_seconds=2)


async def test_cancelled_while_the_store_stalls(database: SqlAddress) -> None:
    """The backend is blocked in sending: it sees no cancel request, but the closed socket."""
    run_sql(
        database, "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(20001, 80000) i"
    )
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
            await eventually(
                lambda: ("active", "Client") in sessions(database), deadline_seconds=10
            )
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
    with psycopg.connect(database.conninfo) as holder:
        async with engines(lock_timeout_seconds=0.2) as opened:
            holder.execute("LOCK TABLE t")
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t": ["id"]})
    assert (caught.value.reason, caught.value.table) == ("lock_timeout", "t")


async def test_statement_that_takes_too_long_is_ended_by_the_server(
    database: SqlAddress,
) -> None:
    run_sql(
        database,
        "CREATE FUNCTION slow(int) RETURNS boolean LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_catalog.pg_sleep(0.01); RETURN true; END'",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE t FORCE ROW LEVEL SECURITY",
        "DROP ROLE IF EXISTS fetcher_src_slow",
        "CREATE ROLE fetcher_src_slow LOGIN",
        "GRANT SELECT ON t TO fetcher_src_slow",
        "CREATE POLICY p ON t USING (slow(id))",
    )
    try:
        connection = replace(connection_to(database), username="fetcher_src_slow")
        async with engines(query_timeout_seconds=0.5) as opened:
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t": ["id"]})
    finally:
        run_sql(database, "DROP OWNED BY fetcher_src_slow", "DROP ROLE fetcher_src_slow")
    assert (caught.value.stage, caught.value.reason) == ("rows", "timeout")


async def test_cell_that_is_too_large_fails_with_its_column(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE large (id int, small text, big text, raw bytea)",
        "INSERT INTO large VALUES (1, 'x', repeat('y', 900), NULL)",
        "INSERT INTO large VALUES (2, repeat('x', 900), repeat('y', 900), NULL)",
    )
    connection = connection_to(database)
    async with engines(max_cell_bytes=1000) as opened:
        # a row may be larger than a cell
        assert len(await rows_of(opened, connection, "large", ["*"])) == 2
        run_sql(
            database, "INSERT INTO large VALUES (3, 'x', 'y', decode(repeat('00', 900), 'hex'))"
        )
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"large": ["*"]})
    found = (caught.value.stage, caught.value.reason, caught.value.table, caught.value.column)
    assert found == ("rows", "cell_too_large", "large", "raw")


async def test_invalid_text_fails_with_table_and_column(postgres: SqlAddress) -> None:
    name = "fetcher_src_ascii"
    with psycopg.connect(postgres.conninfo, autocommit=True) as admin:
        identifier = sql.Identifier(name)
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(identifier))
        admin.execute(
            sql.SQL(
                "CREATE DATABASE {} TEMPLATE template0 ENCODING 'SQL_ASCII'"
                " LC_COLLATE 'C' LC_CTYPE 'C'"
            ).format(identifier)
        )
        try:
            address = replace(postgres, database=name)
            run_sql(
                address,
                "CREATE TABLE t (id int, fine text, broken text)",
                "INSERT INTO t SELECT i, 'h\u00e9llo', 'plain' FROM generate_series(1, 3000) i",
                "INSERT INTO t VALUES (0, 'h\u00e9llo', convert_from('\\xf3', 'SQL_ASCII'))",
            )
            async with engines() as opened:
                fields = ["id", "fine"]
                fine = await rows_of(opened, connection_to(address), "t", fields)
                with pytest.raises(EngineError) as caught:
                    await document(opened, connection_to(address), {"t": ["*"]})
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))
    assert len(fine) == 3001
    assert fine[0] == {"id": 1, "fine": "h\u00e9llo"}
    found = (caught.value.stage, caught.value.reason, caught.value.table, caught.value.column)
    assert found == ("rows", "invalid_text", "t", "broken")
