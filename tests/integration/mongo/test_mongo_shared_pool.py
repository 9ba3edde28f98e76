"""The connections of a client that two tenants share, one of which asks for what takes long."""

from collections.abc import AsyncIterator, Callable
from typing import cast
from urllib.parse import urlsplit

import pytest
import trio

from fetcher.adapters.mongo import server as mongo_server
from fetcher.adapters.mongo.failures import NeverSent
from fetcher.adapters.mongo.job_records import MongoJobRecords
from fetcher.adapters.mongo.records import MongoRecords
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.adapters.mongo.shared_clients import open_shared_clients
from fetcher.domain.tenants import MongoPlace
from tests.integration.mongo.builders import a_job
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

POOL = 6
SLOW_SECONDS = 3


@pytest.fixture
async def tenants(
    asyncio_room: None, mongo_uri: str, mongo_database: Callable[[], str]
) -> AsyncIterator[tuple[MongoRecords, MongoRecords]]:
    parts = urlsplit(mongo_uri)
    places = [
        MongoPlace(
            database=mongo_database(),
            host=parts.hostname or "",
            port=parts.port or 0,
            max_pool_size=POOL,
        )
        for _ in range(2)
    ]
    async with (
        open_shared_clients(allow_plaintext=True, idle_seconds=300) as clients,
        clients.records(places[0]) as first,
        clients.records(places[1]) as second,
    ):
        await first.jobs.insert(a_job())
        await second.jobs.insert(a_job())
        assert clients.count == 1
        yield first, second


def server_of(records: MongoRecords) -> MongoServer:
    return cast("MongoJobRecords", records.jobs)._server


async def take_long(turn: Turn) -> None:
    """The server answers once it has something new to say of itself."""
    said = await turn.database.command("hello")
    await turn.database.command(
        "hello", topologyVersion=said["topologyVersion"], maxAwaitTimeMS=SLOW_SECONDS * 1000
    )


async def test_operations_that_take_long_leave_connections_to_another_tenant(
    tenants: tuple[MongoRecords, MongoRecords],
) -> None:
    slow, other = tenants
    ended = 0

    async def ask() -> None:
        nonlocal ended
        await server_of(slow).run(take_long)
        ended += 1

    async with trio.open_nursery() as nursery:
        for _ in range(2 * POOL):
            nursery.start_soon(ask)
        await eventually(lambda: slow.connection_use()[1] >= POOL // 2, deadline_seconds=2)
        with trio.fail_after(SLOW_SECONDS - 0.5):
            for _ in range(10):
                job = a_job()
                await other.jobs.insert(job)
                assert await other.jobs.get(job.id) is not None
        assert slow.connection_use()[1] == POOL // 2
        assert ended == 0
        nursery.cancel_scope.cancel()
    with trio.fail_after(SLOW_SECONDS - 0.5):
        await slow.jobs.get(a_job().id)


async def test_an_operation_that_gets_no_connection_in_time_was_never_sent(
    tenants: tuple[MongoRecords, MongoRecords], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, _ = tenants
    asked: list[str] = []

    async def note(_: Turn) -> None:
        asked.append("it")

    async with trio.open_nursery() as nursery:
        for _ in range(POOL):
            nursery.start_soon(server_of(slow).run, take_long)
        await eventually(lambda: slow.connection_use()[1] >= POOL // 2, deadline_seconds=2)
        monkeypatch.setattr(mongo_server, "OPERATION_SECONDS", 0.1)
        with pytest.raises(NeverSent, match="too many operations"):
            await server_of(slow).run(note, settle=note)
        nursery.cancel_scope.cancel()
    assert asked == []
