"""Who is cancelled while a server says nothing leaves at once and leaves nothing open (case 13).

Every connector that dials, by the real drivers: the limits of a caller hold whatever a driver waits
for (spec datasources 4, 19.9).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
import trio

from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.jobs import JobOptions
from tests.integration.datasources.harness import TENANT, a_connection, engines

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

ENCRYPTED = {
    SourceType.POSTGRESQL: "require",
    SourceType.MYSQL: "skip-verify",
    SourceType.ORACLE: "skip-verify",
    SourceType.SQL_SERVER: "false",
    SourceType.MONGODB: "insecure",
}


@dataclass(slots=True)
class Silent:
    """Takes what is sent and says nothing, until the other side has gone."""

    port: int = 0
    visits: int = 0
    visited: trio.Event = field(default_factory=trio.Event)
    left: trio.Event = field(default_factory=trio.Event)

    async def listen(self, stream: trio.SocketStream) -> None:
        self.visits += 1
        self.visited.set()
        try:
            async for _ in stream:
                pass
        except trio.BrokenResourceError:
            pass
        self.visits -= 1
        if not self.visits:
            self.left.set()


@asynccontextmanager
async def a_silent_server() -> AsyncIterator[Silent]:
    server = Silent()
    async with trio.open_nursery() as nursery:
        serving = partial(trio.serve_tcp, server.listen, 0, host="127.0.0.1")
        listeners = await nursery.start(serving)
        server.port = listeners[0].socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


def a_source(source_type: SourceType, port: int, *, encrypted: bool) -> Connection:
    return a_connection(
        source_type=source_type,
        host="127.0.0.1",
        port=port,
        database="shop",
        user="app",
        password="secret",
        tls=TlsSettings(mode=ENCRYPTED[source_type]) if encrypted else None,
        metadata={"serviceName": "ORDERS"} if source_type is SourceType.ORACLE else None,
    )


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("source_type", ENCRYPTED)
async def test_a_cancelled_test_ends_and_closes_what_it_opened(
    source_type: SourceType, encrypted: bool
) -> None:
    async with a_silent_server() as server, engines() as opened:
        connection = a_source(source_type, server.port, encrypted=encrypted)
        engine = opened.engine_for([connection], JobOptions())
        # their own limits are 5 seconds a phase: what ends within 4 was ended by the caller
        with trio.fail_after(4):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(engine.test_connection, TENANT, "src")
                await server.visited.wait()
                nursery.cancel_scope.cancel()
            await server.left.wait()
