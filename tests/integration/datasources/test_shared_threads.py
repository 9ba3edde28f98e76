"""One tenant's servers that say nothing, and another's that answer, in one process."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
import trio

from fetcher.bootstrap.tenancy.fair_threads import FairThreads
from fetcher.datasources.engines import RequestEngines
from fetcher.domain.connections import Connection
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources import mongo_sources
from tests.integration.datasources.harness import TENANT, engines, rows_of
from tests.integration.datasources.mariadb import connection_to, own_database, run_sql
from tests.integration.datasources.mongo_sources import Source
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

AT_SILENT_SERVERS = 100
"""More than there are threads of any type; a connection has 25 sessions, of MongoDB fewer."""
SOON_SECONDS = 4.0
"""Less than a login may take, for which a silent server holds its thread."""


@pytest.fixture(params=["mariadb", "mongodb"])
def answering(
    request: pytest.FixtureRequest, source: Source, mariadb: SqlAddress
) -> Iterator[Connection]:
    if request.param == "mongodb":
        source["t"].insert_one({"_id": 1, "id": 1})
        yield mongo_sources.to(source)
        source.drop_collection("t")
        return
    with own_database(mariadb) as address:
        run_sql(address, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
        yield connection_to(address)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Whoever connects is let in by the kernel, and nobody ever speaks."""
    with socket.create_server(("127.0.0.1", 0), backlog=4 * AT_SILENT_SERVERS) as listener:
        yield int(listener.getsockname()[1])


async def check(opened: RequestEngines, connection: Connection) -> None:
    await opened.engine_for([connection], JobOptions()).test_connection(TENANT, "src")


async def test_servers_that_say_nothing_make_no_other_tenant_wait(
    answering: Connection, silent_port: int
) -> None:
    shared = FairThreads()
    silent = replace(answering, host="127.0.0.1", port=silent_port)

    async def ask(opened: RequestEngines) -> None:
        with suppress(EngineError):
            await check(opened, replace(silent, id=new_connection_id()))

    def has_all_it_can_get() -> bool:
        return any(places.free == places.total // 2 > 1 for places in shared._places.values())

    async with (
        engines(threads=shared.of_tenant("slow")) as slow,
        engines(threads=shared.of_tenant("other")) as other,
        trio.open_nursery() as nursery,
    ):
        for _ in range(AT_SILENT_SERVERS):
            nursery.start_soon(ask, slow)
        await eventually(has_all_it_can_get, deadline_seconds=SOON_SECONDS)
        with trio.fail_after(SOON_SECONDS):
            await check(other, answering)
            rows = await rows_of(other, answering, "t", ["id"])
        assert [row["id"] for row in rows] == [1]
        assert has_all_it_can_get()
        nursery.cancel_scope.cancel()
