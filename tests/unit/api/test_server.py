"""The real server: connections that last, and what ends one of them alone."""

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from fetcher.api.server import BoundAddress, tell_listening
from tests.unit.api.harness import CONNECTIONS, PRODUCT, a_body, an_api
from tests.unit.api.serving import serving


async def test_connection_is_kept_for_the_next_request() -> None:
    api = an_api()
    async with serving(api.app) as server, server.connected() as client:
        body = json.dumps(a_body()).encode()
        product = f"X-Product-Name: {PRODUCT['X-Product-Name']}"
        await client.request("POST", CONNECTIONS, body, product, "Content-Type: application/json")
        status, headers, created = await client.answer()
        assert status == 201
        assert "server" not in headers
        assert headers["x-request-id"]
        await client.request("GET", f"{CONNECTIONS}/{json.loads(created)['id']}")
        assert (await client.answer())[2] == created


async def test_connection_that_stays_idle_after_its_request_is_closed() -> None:
    async with serving(an_api().app) as server, server.connected() as client:
        await client.request("GET", "/version")
        assert (await client.answer())[0] == 200
        assert await client.is_closed()


async def test_requests_sent_at_once_are_answered_in_their_order() -> None:
    async with serving(an_api().app) as server, server.connected() as client:
        for path in ("/version", "/nope", "/health"):
            await client.request("GET", path)
        assert [(await client.answer())[0] for _ in range(3)] == [200, 404, 200]


def test_log_says_where_the_server_listens() -> None:
    with capture_logs() as lines:
        tell_listening("http", [BoundAddress("127.0.0.1", 4006), BoundAddress("::1", 4006)])
    assert lines == [
        {"event": "listening", "log_level": "info", "server": "http", "host": host, "port": 4006}
        for host in ("127.0.0.1", "::1")
    ]


async def test_port_0_takes_a_free_port_and_tells_it() -> None:
    async with serving(an_api().app) as one, serving(an_api().app) as two:
        ports = {one.addresses[0].port, two.addresses[0].port}
        assert len(ports) == 2
        assert 0 not in ports


async def test_crash_of_the_application_ends_its_connection_only() -> None:
    async def crashing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("canary")

    async with serving(crashing) as server:
        for _ in range(2):
            async with server.connected() as client:
                await client.request("GET", "/")
                assert await client.is_closed()


async def test_server_says_nothing_on_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    with capture_logs():
        async with serving(an_api().app) as server, server.connected() as client:
            await client.request("GET", "/nope")
            await client.answer()
    assert capfd.readouterr() == ("", "")
