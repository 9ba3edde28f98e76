"""A resolver that changes its answer between the look at a host and the dial (spec 13.4, 19.4).

Every connector that dials, by the real drivers, as a worker of a guarded host has it.
"""

import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
import trio

from fetcher.datasources.host_guard import HostGuard, HostList
from fetcher.domain.connections import Connection, SourceType
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    a_connection,
    connection_to,
    document,
    engines,
    parsed,
)
from tests.integration.datasources.harness import run_sql as run_postgres
from tests.integration.datasources.mariadb import connection_to as mariadb_connection_to
from tests.integration.datasources.mariadb import run_sql as run_mariadb
from tests.integration.datasources.mongo_sources import Source
from tests.integration.datasources.mongo_sources import to as to_mongo
from tests.servers.addresses import SqlAddress

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

NAME = "db.acme.test"
JUDGED, OTHER = "127.0.0.1", "10.0.0.3"
REAL = socket.getaddrinfo


class Resolver:
    """Leads ``NAME`` to the judged address, and ever after to another one."""

    def __init__(self) -> None:
        self.asked = 0

    def getaddrinfo(self, host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if host != NAME:
            return REAL(host, port, *arguments, **options)
        self.asked += 1
        address = JUDGED if self.asked == 1 else OTHER
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


@dataclass(slots=True)
class Listener:
    """Hangs up on whoever comes."""

    port: int = 0
    visits: int = 0

    async def hang_up(self, stream: trio.SocketStream) -> None:
        self.visits += 1
        await stream.aclose()


@asynccontextmanager
async def a_listener() -> AsyncIterator[Listener]:
    listener = Listener()
    async with trio.open_nursery() as nursery:
        serving = partial(trio.serve_tcp, listener.hang_up, 0, host=JUDGED)
        listeners = await nursery.start(serving)
        listener.port = listeners[0].socket.getsockname()[1]
        yield listener
        nursery.cancel_scope.cancel()


def a_source(source_type: SourceType, port: int) -> Connection:
    return a_connection(
        source_type=source_type,
        host=NAME,
        port=port,
        database="shop",
        user="app",
        password="secret",
        metadata={"serviceName": "ORDERS"} if source_type is SourceType.ORACLE else None,
    )


DIALLING = [each for each in SourceType if each is not SourceType.SQLITE]


@pytest.mark.parametrize("source_type", DIALLING)
async def test_only_the_address_that_was_judged_is_dialled(
    source_type: SourceType, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = HostGuard(allow=HostList.of([JUDGED]))
    resolver = Resolver()
    async with a_listener() as listener, engines(judge=guard.judge) as opened:
        monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
        connection = a_source(source_type, listener.port)
        outcomes = []
        visits = []
        for _ in range(2):
            with trio.fail_after(20), pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t": ["a"]})
            outcomes.append((caught.value.stage, caught.value.reason))
            visits.append((resolver.asked, listener.visits > 0))
            listener.visits = 0
    assert outcomes == [("tcp", "network"), ("dns", "host_refused")]
    assert visits == [(1, True), (2, False)]


@pytest.fixture
def postgres_source(postgres_database: Callable[[], SqlAddress]) -> Connection:
    address = postgres_database()
    run_postgres(address, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1), (2)")
    return connection_to(address)


@pytest.fixture
def mariadb_source(mariadb: SqlAddress) -> Iterator[Connection]:
    name = f"fetcher_t_{secrets.token_hex(6)}"
    run_mariadb(mariadb, f"CREATE DATABASE {name}")
    address = replace(mariadb, database=name)
    try:
        run_mariadb(address, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1), (2)")
        yield mariadb_connection_to(address)
    finally:
        run_mariadb(mariadb, f"DROP DATABASE {name}")


@pytest.fixture
def mongo_source(source: Source) -> Connection:
    source["t"].insert_many([{"a": 1}, {"a": 2}])
    return to_mongo(source)


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("kind", ["postgres", "mariadb", "mongo"])
async def test_a_whole_job_stays_with_the_address_that_was_judged(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session asks once: later answers, which lead elsewhere, reach no driver, whatever it
    looks up by itself. The next session's own look is judged anew."""
    connection: Connection = request.getfixturevalue(f"{kind}_source")
    guard = HostGuard(allow=HostList.of([JUDGED]))
    resolver = Resolver()
    wanted = {"t": ["a"]}
    named = replace(connection, host=NAME)
    async with engines(judge=guard.judge) as opened:
        monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
        rows = parsed(await document(opened, named, wanted))["t"]
    assert [row["a"] for row in rows] == [1, 2]
    assert resolver.asked == 1
    async with engines(judge=guard.judge) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, named, wanted)
    assert (caught.value.stage, caught.value.reason) == ("dns", "host_refused")
    assert resolver.asked == 2
