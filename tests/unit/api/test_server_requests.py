"""Heads and bodies that the real server cuts off or refuses: case 24, spec rest-api 2.2."""

import json
from contextlib import suppress

import pytest
import trio

from fetcher.api.services import HttpSettings
from tests.unit.api.harness import JOBS, an_api
from tests.unit.api.serving import serving


async def test_declared_body_of_5_mb_is_refused_and_the_client_finds_the_answer() -> None:
    """The client sends all of it before it looks: a reset would cost it the answer."""
    async with serving(an_api().app) as server, server.connected() as client:
        await client.request("POST", JOBS, bytes(5_000_000), "Content-Type: application/json")
        status, headers, body = await client.answer()
        assert (status, headers["connection"]) == (413, "close")
        assert json.loads(body)["errorCode"] == "request_too_large"
        assert await client.is_closed()


async def test_endless_chunked_body_is_refused_and_cut_off() -> None:
    chunk = b"100000\r\n" + bytes(0x100000) + b"\r\n"
    sent = 0
    async with serving(an_api().app) as server, server.connected() as client:
        await client.send(b"POST /v1/fetcher HTTP/1.1\r\nHost: t\r\n")
        await client.send(b"Transfer-Encoding: chunked\r\n\r\n")
        with trio.fail_after(30), suppress(trio.BrokenResourceError):
            while True:
                await client.send(chunk)
                sent += 1
        async with server.connected() as other:
            await other.request("GET", "/version")
            assert (await other.answer())[0] == 200
    assert sent >= 4


async def test_body_that_stops_is_cut_off_while_others_are_served() -> None:
    api = an_api(settings=HttpSettings(body_seconds=0.5))
    async with (
        serving(api.app) as server,
        server.connected() as slow,
        server.connected() as other,
    ):
        await slow.send(b"POST /v1/fetcher HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{")
        await other.request("GET", "/version")
        assert (await other.answer())[0] == 200
        status, headers, body = await slow.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert json.loads(body)["errorCode"] == "request_timeout"
        assert await slow.is_closed()


@pytest.mark.parametrize("head", [b"", b"GET /version HT", b"GET /version HTTP/1.1\r\nHost: t\r\n"])
async def test_head_that_does_not_come_is_cut_off(head: bytes) -> None:
    async with serving(an_api().app) as server, server.connected() as client:
        await client.send(head)
        assert await client.is_closed()


@pytest.mark.parametrize(("padding", "has_body"), [(5_000, True), (60_000, True), (200_000, False)])
async def test_large_head_is_refused(padding: int, has_body: bool) -> None:
    async with serving(an_api().app) as server, server.connected() as client:
        with suppress(trio.BrokenResourceError):
            await client.request("GET", "/version", b"", "X-Padding: " + "p" * padding)
        status, _, body = await client.answer()
        assert status == 431
        assert bool(body) is has_body


@pytest.mark.parametrize(
    "nonsense",
    [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost\r\n\r\n"],
)
async def test_what_is_no_http_ends_its_connection_only(nonsense: bytes) -> None:
    async with serving(an_api().app) as server:
        async with server.connected() as client:
            await client.send(nonsense)
            assert await client.is_closed()
        async with server.connected() as client:
            await client.request("GET", "/version")
            assert (await client.answer())[0] == 200
