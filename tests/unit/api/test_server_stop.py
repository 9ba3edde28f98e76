"""The end of the real server: case 25."""

import pytest
import trio

from fetcher.api.server import ServerLimits
from tests.unit.api.harness import JOBS, an_api
from tests.unit.api.serving import SOME_CONNECTION, SlowConnections, serving


async def test_stop_closes_idle_connections_and_finishes_the_request_that_runs() -> None:
    connections = SlowConnections()
    api = an_api(connections=connections)
    async with (
        serving(api.app) as server,
        server.connected() as idle,
        server.connected() as busy,
    ):
        await idle.request("GET", "/version")
        await idle.answer()
        await busy.request("GET", SOME_CONNECTION)
        await connections.asked.wait()
        server.stop.set()
        assert await idle.is_closed()
        with pytest.raises(OSError, match="all attempts to connect"):
            async with server.connected():
                pass
        assert not server.ended.is_set()
        connections.go_on.set()
        assert (await busy.answer())[0] == 404
        assert await busy.is_closed()
        with trio.fail_after(1):
            await server.ended.wait()


async def test_request_that_does_not_end_is_cut_off_after_the_grace() -> None:
    connections = SlowConnections()
    limits = ServerLimits(graceful_seconds=0.3)
    api = an_api(connections=connections)
    async with serving(api.app, limits) as server, server.connected() as busy:
        await busy.request("GET", SOME_CONNECTION)
        await connections.asked.wait()
        server.stop.set()
        with trio.fail_after(3):
            await server.ended.wait()
        assert await busy.is_closed()


async def test_event_stream_ends_with_the_server() -> None:
    api = an_api()
    async with serving(api.app) as server, server.connected() as client:
        await client.request("GET", f"{JOBS}/events")
        assert b"retry: 1000" in await client.until(b"\n\n\r\n")
        api.services.stopping.set()
        began = trio.current_time()
        server.stop.set()
        assert await client.is_closed()
        await server.ended.wait()
        assert trio.current_time() - began < 1
