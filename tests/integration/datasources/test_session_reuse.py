"""Sessions that serve one job after the other, on real servers (spec datasources 4, 12.2, 12.3)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import psycopg
import pytest
import trio

from fetcher.datasources import session_supply
from fetcher.datasources.engines import RequestEngines
from fetcher.domain.connections import Connection
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources import harness, mariadb
from tests.integration.datasources.harness import TENANT, document, engines, rows_of
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration


@dataclass(frozen=True, slots=True)
class Server:
    """A database of this test's own, and how its sessions are watched from outside."""

    address: SqlAddress
    connection_to: Callable[[SqlAddress], Connection]
    run_sql: Callable[..., None]
    session_ids: Callable[[SqlAddress], list[int]]
    killing: str
    slow_view: str

    @property
    def connection(self) -> Connection:
        return self.connection_to(self.address)

    def ids(self) -> list[int]:
        """Of our sessions in this database."""
        return self.session_ids(self.address)

    def kill(self, session_id: int) -> None:
        self.run_sql(self.address, self.killing.format(session_id))


def postgresql_ids(address: SqlAddress) -> list[int]:
    with psycopg.connect(address.conninfo, autocommit=True) as admin:
        found = admin.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'fetcher'"
        ).fetchall()
    return [pid for (pid,) in found]


def mariadb_ids(address: SqlAddress) -> list[int]:
    found = mariadb.rows_in(
        address,
        "SELECT id FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID()",
    )
    return [number for (number,) in found]


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "postgresql":
        postgres_database: Callable[[], SqlAddress] = request.getfixturevalue("postgres_database")
        yield Server(
            address=postgres_database(),
            connection_to=harness.connection_to,
            run_sql=harness.run_sql,
            session_ids=postgresql_ids,
            killing="SELECT pg_terminate_backend({})",
            slow_view="SELECT id, s FROM t, pg_sleep(30)",
        )
    else:
        with mariadb.own_database(request.getfixturevalue("mariadb")) as address:
            yield Server(
                address=address,
                connection_to=mariadb.connection_to,
                run_sql=mariadb.run_sql,
                session_ids=mariadb_ids,
                killing="KILL {}",
                slow_view="SELECT id, s FROM t WHERE sleep(30) = 0",
            )


@pytest.fixture
def table(server: Server) -> Server:
    server.run_sql(
        server.address,
        "CREATE TABLE t (id int PRIMARY KEY, s varchar(20))",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        f"CREATE VIEW slow AS {server.slow_view}",
    )
    return server


async def read(opened: RequestEngines, connection: Connection) -> None:
    rows = await rows_of(opened, connection, "t", ["id", "s"])
    assert [(row["id"], row["s"]) for row in rows] == [(1, "a"), (2, "b")]


async def test_jobs_read_one_after_the_other_in_the_same_session(table: Server) -> None:
    connection = table.connection
    async with engines() as opened:
        await read(opened, connection)
        first = table.ids()
        assert len(first) == 1
        table.run_sql(table.address, "UPDATE t SET s = 'A' WHERE id = 1")
        rows = await rows_of(opened, connection, "t", ["s"])
        assert sorted(row["s"] for row in rows) == ["A", "b"], "its snapshot is a new one"
        assert table.ids() == first
    await eventually(lambda: table.ids() == [], deadline_seconds=5)


async def test_a_waiting_session_is_in_no_transaction_and_blocks_nobody(table: Server) -> None:
    async with engines() as opened:
        await read(opened, table.connection)
        assert len(table.ids()) == 1
        with trio.fail_after(10):
            await trio.to_thread.run_sync(
                lambda: table.run_sql(table.address, "DROP VIEW slow", "DROP TABLE t")
            )


async def test_a_session_that_was_broken_by_its_server_is_replaced_quietly(table: Server) -> None:
    connection = table.connection
    async with engines() as opened:
        await read(opened, connection)
        (first,) = table.ids()
        table.kill(first)
        await read(opened, connection)
        (second,) = table.ids()
    assert second != first


async def test_two_records_of_one_name_share_no_session(table: Server) -> None:
    """As two tenants may have them."""
    connection = table.connection
    async with engines() as opened:
        await read(opened, connection)
        first = table.ids()
        await read(opened, replace(connection, id=new_connection_id()))
        assert len(table.ids()) == 2
        assert set(first) < set(table.ids())


async def test_a_changed_password_never_gets_the_old_session(table: Server) -> None:
    connection = table.connection
    changed = replace(connection, password_encrypted=f"{connection.password_encrypted}x")
    async with engines() as opened:
        await read(opened, connection)
        (first,) = table.ids()
        # a test server may let anybody in: it is the session that tells
        with suppress(EngineError):
            await read(opened, changed)
        await eventually(lambda: first not in table.ids(), deadline_seconds=5)


async def test_a_connection_test_logs_in_anew(table: Server) -> None:
    connection = table.connection
    async with engines() as opened:
        await read(opened, connection)
        (first,) = table.ids()
        await opened.engine_for([connection], JobOptions()).test_connection(TENANT, "src")
        assert len(table.ids()) == 2
        assert first in table.ids()


async def test_a_failed_session_is_not_taken_up(table: Server) -> None:
    connection = table.connection
    async with engines(include_views=True, query_timeout_seconds=0.5) as opened:
        await read(opened, connection)
        (first,) = table.ids()
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"slow": ["id"]})
        assert (caught.value.category, caught.value.reason) == ("timeout", "timeout")
        await eventually(lambda: table.ids() == [], deadline_seconds=5)
        await read(opened, connection)
        assert first not in table.ids()


async def test_a_cancelled_session_is_not_taken_up(table: Server) -> None:
    connection = table.connection
    async with engines(include_views=True) as opened:
        await read(opened, connection)
        (first,) = table.ids()
        with trio.move_on_after(0.5) as scope:
            await document(opened, connection, {"slow": ["id"]})
        assert scope.cancelled_caught
        await eventually(lambda: table.ids() == [], deadline_seconds=5)
        await read(opened, connection)
        assert first not in table.ids()


async def test_time_ends_a_waiting_session(table: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetcher.datasources.idle_sessions.IDLE_SECONDS", 0.3)
    async with engines() as opened:
        await read(opened, table.connection)
        await eventually(lambda: table.ids() == [], deadline_seconds=5)


async def test_age_ends_a_session_that_is_used_again_and_again(
    table: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetcher.datasources.idle_sessions.LIFETIME_SECONDS", 0.5)
    connection = table.connection
    async with engines() as opened:
        await read(opened, connection)
        (first,) = table.ids()

        async def used_until_it_is_another_one() -> None:
            while table.ids() in ([first], []):
                await read(opened, connection)

        with trio.fail_after(10):
            await used_until_it_is_another_one()


async def test_what_a_job_set_in_its_session_is_gone(table: Server) -> None:
    """A view's function may change the session that reads it."""
    connection = table.connection
    if connection.type == "POSTGRESQL":
        table.run_sql(
            table.address,
            "CREATE FUNCTION spoil() RETURNS int LANGUAGE sql AS"
            " $$ SELECT length(set_config('x.y', 'left', false)"
            " || set_config('DateStyle', 'SQL, DMY', false)) $$",
            "CREATE VIEW spoiling AS SELECT spoil() AS id",
            "CREATE VIEW spoilt AS SELECT current_setting('x.y', true) AS s",
        )
        before = [{"s": None}]
    else:
        table.run_sql(
            table.address,
            "CREATE FUNCTION spoil() RETURNS int NOT DETERMINISTIC"
            " BEGIN SET @left = 'left'; SET SESSION group_concat_max_len = 5; RETURN 1; END",
            "CREATE FUNCTION spoilt_by() RETURNS varchar(20) NOT DETERMINISTIC RETURN @left",
            "CREATE VIEW spoiling AS SELECT spoil() AS id",
            "CREATE VIEW spoilt AS SELECT spoilt_by() AS s",
        )
        before = [{"s": None}]
    async with engines(include_views=True) as opened:
        await rows_of(opened, connection, "spoiling", ["id"])
        (first,) = table.ids()
        rows = await rows_of(opened, connection, "spoilt", ["s"])
        assert table.ids() == [first]
    # a custom setting that was once known is empty rather than unknown in PostgreSQL
    assert [{"s": row["s"] or None} for row in rows] == before


async def test_many_jobs_at_once_keep_no_more_than_may_wait(table: Server) -> None:
    connection = table.connection
    async with engines() as opened:
        async with trio.open_nursery() as nursery:
            for _ in range(14):
                nursery.start_soon(read, opened, connection)
        await eventually(lambda: len(table.ids()) <= 10, deadline_seconds=5)
        assert table.ids()


async def test_without_time_to_put_it_to_rest_a_session_ends(
    table: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_supply, "REST_SECONDS", 0.0)
    async with engines() as opened:
        await read(opened, table.connection)
        await eventually(lambda: table.ids() == [], deadline_seconds=5)
