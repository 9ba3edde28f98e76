"""PostgreSQL behind a pooler: what we set and do is over when our transaction is.

The last tests run PgBouncer itself where it is installed.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import psycopg
import pytest
import trio
from psycopg import sql

from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.targets import Target
from fetcher.domain.connections import Connection
from fetcher.domain.jobs import JobOptions
from fetcher_engine import SourceFailure, Stage
from tests.integration.datasources.harness import (
    TENANT,
    connection_to,
    document,
    engines,
    run_sql,
)
from tests.servers.addresses import SqlAddress
from tests.servers.processes import free_port, running
from tests.servers.waiting import eventually, eventually_sync

pytestmark = pytest.mark.integration

SETTINGS: Final = (
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "standard_conforming_strings",
    "search_path",
    "jit",
    "max_parallel_workers_per_gather",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "client_encoding",
    "transaction_read_only",
)
IN_USE: Final = "SELECT {}".format(", ".join(f"current_setting('{name}')" for name in SETTINGS))
FIELDS: Final = {"t": ["at", "f"]}
WHOLE: Final = b'{"src":{"t":[{"at":"2024-05-06T05:08:09Z","f":0.30000000000000004}]}}'


@pytest.fixture
def database(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    """With defaults that are not ours."""
    address = postgres_database()
    run_sql(
        address,
        "CREATE TABLE t (f float8, at timestamptz)",
        "INSERT INTO t VALUES (0.1::float8 + 0.2::float8, '2024-05-06 07:08:09+02')",
        *(
            f"ALTER DATABASE {address.database} SET {setting}"
            for setting in (
                "TimeZone = 'Asia/Tokyo'",
                "DateStyle = 'SQL, DMY'",
                "extra_float_digits = 0",
                "statement_timeout = '59s'",
            )
        ),
    )
    return address


@pytest.fixture
async def session(database: SqlAddress) -> AsyncIterator[Session]:
    target = Target(
        host=database.host,
        port=database.port,
        database=database.database,
        user=database.user,
        password=database.password,
    )
    opened = await Session.open(target, statement_seconds=30, lock_seconds=10)
    yield opened
    await opened.close()


def in_use(session: Session) -> list[bytes | None]:
    """What holds in the session itself, asked behind its back."""
    result = session.pgconn.exec_(IN_USE.encode())
    return [result.get_value(0, number) for number in range(len(SETTINGS))]


async def test_nothing_is_left_of_a_statement_alone(session: Session) -> None:
    before = in_use(session)
    result = await session.execute(sql.SQL(IN_USE), Stage.QUERY)
    ours = [result.get_value(0, number) for number in range(len(SETTINGS))]
    assert ours[0] == b"UTC"
    assert ours[SETTINGS.index("transaction_read_only")] == b"on"
    assert in_use(session) == before
    assert before[0] == b"Asia/Tokyo"


async def test_nothing_is_left_of_a_failed_statement(session: Session) -> None:
    before = in_use(session)
    with pytest.raises(SourceFailure):
        await session.execute(b"CREATE TABLE u (a int)", Stage.QUERY)
    assert in_use(session) == before


async def test_nothing_is_left_of_a_snapshot(session: Session) -> None:
    before = in_use(session)
    assert await session.begin_snapshot()
    assert in_use(session)[:6] == [b"UTC", b"ISO, MDY", b"postgres", b"3", b"on", b""]
    session.pgconn.exec_(b"ROLLBACK")
    assert in_use(session) == before


async def test_a_session_of_another_process_than_its_own_ends_rather_than_waits(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "fetcher.datasources.postgresql.session._OWN_PROCESS",
        b"SELECT pg_catalog.pg_backend_pid() + 1",
    )
    session.pgconn.exec_(b"SET work_mem = '4321kB'")
    assert await session.begin_snapshot()
    with pytest.raises(SourceFailure, match="pooled"):
        await session.rest()
    assert session.pgconn.exec_(b"SHOW work_mem").get_value(0, 0) == b"4321kB", "it is theirs"


async def test_a_database_whose_strings_know_escapes(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    address = postgres_database()
    run_sql(
        address,
        'CREATE TABLE "we\\ird" (id int, "a\\" text)',
        "INSERT INTO \"we\\ird\" VALUES (1, 'x\\'), (2, 'y')",
        f"ALTER DATABASE {address.database} SET standard_conforming_strings = off",
    )
    async with engines() as opened:
        data = await document(
            opened,
            connection_to(address),
            {"we\\ird": ["*"]},
            filters={"we\\ird": {"a\\": {"eq": ["x\\"]}}},
        )
    assert data == b'{"src":{"we\\\\ird":[{"a\\\\":"x\\\\","id":1}]}}'


@contextmanager
def pgbouncer(server: SqlAddress, mode: str, folder: Path) -> Iterator[SqlAddress]:
    """One process of the server for all clients."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    port = free_port()
    login = f"host={server.host} port={server.port} user={server.user}"
    if server.password:
        login += f" password={server.password}"
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = {login}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 1\n",
        encoding="utf-8",
    )
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with running(
        [program, *user, str(folder / "pgbouncer.ini")],
        environment={},
        folder=folder,
        name="pgbouncer",
    ):
        address = replace(server, port=port)
        eventually_sync(lambda: _answers(address), deadline_seconds=10)
        yield address


def _answers(address: SqlAddress) -> bool:
    try:
        with psycopg.connect(address.conninfo, autocommit=True, connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def seen_by_others(address: SqlAddress) -> tuple[object, ...]:
    """And which process of the server they meet."""
    with psycopg.connect(address.conninfo, autocommit=True, connect_timeout=5) as other:
        row = other.execute(f"{IN_USE}, current_setting('work_mem'), pg_backend_pid()").fetchone()
    assert row is not None
    return row


async def ask_for_everything(connection: Connection) -> None:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        await engine.test_connection(TENANT, "src")
        schema = await engine.discover_schema(TENANT, "src")
        assert [table.name for table in schema.tables] == ["t"]
        for _ in range(2):
            assert await document(opened, connection, FIELDS) == WHOLE


async def test_pgbouncer_by_the_transaction(database: SqlAddress, tmp_path: Path) -> None:
    with pgbouncer(database, "transaction", tmp_path) as address:
        run_sql(address, "SET work_mem = '4321kB'")
        before = seen_by_others(address)
        assert before[-2] == "4321kB"
        await ask_for_everything(connection_to(address))
        assert seen_by_others(address) == before


@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
async def test_a_cancelled_job_behind_pgbouncer_leaves_no_query(
    database: SqlAddress, tmp_path: Path, mode: str
) -> None:
    run_sql(database, "CREATE VIEW slow AS SELECT f FROM t, pg_sleep(60)")

    def running_queries() -> int:
        with psycopg.connect(database.conninfo, autocommit=True) as admin:
            (count,) = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event = 'PgSleep'"
            ).fetchone() or (0,)
        return int(count)

    with pgbouncer(database, mode, tmp_path) as address:
        async with engines(include_views=True) as opened, trio.open_nursery() as nursery:
            nursery.start_soon(document, opened, connection_to(address), {"slow": ["f"]})
            await eventually(lambda: running_queries() == 1, deadline_seconds=10)
            nursery.cancel_scope.cancel()
        await eventually(lambda: running_queries() == 0, deadline_seconds=5)


@pytest.mark.parametrize("mode", ["session", "statement"])
async def test_pgbouncer(database: SqlAddress, tmp_path: Path, mode: str) -> None:
    with pgbouncer(database, mode, tmp_path) as address:
        before = seen_by_others(address)
        await ask_for_everything(connection_to(address))
        assert seen_by_others(address)[:-1] == before[:-1]
