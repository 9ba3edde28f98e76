"""Clients that ask for another protocol, do not read, go away, or are too many."""

import json
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

import trio

from fetcher.api.server import ServerLimits
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId
from tests.unit.api.harness import an_api
from tests.unit.api.serving import QUICK, SOME_CONNECTION, Serving, SlowConnections, serving

NO_BODY = (b"content-length", b"0")
PATIENT = replace(QUICK, half_closed_seconds=30)


async def test_upgrade_to_http_2_is_ignored() -> None:
    """Some clients ask for it with every request."""
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    async with serving(an_api().app) as server, server.connected() as client:
        await client.send("\r\n".join(["GET /health HTTP/1.1", "Host: test", *upgrade]).encode())
        await client.send(b"\r\n\r\n")
        assert (await client.answer())[0] == 200


async def test_client_that_assumes_http_2_is_refused_in_http_1_and_let_go() -> None:
    """In HTTP/2 a client that grants no window kept the process from ever ending."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    async with serving(an_api().app) as server, server.connected() as client:
        await client.send(preface)
        assert (await client.answer())[0] >= 400
        assert await client.is_closed()


async def test_client_that_does_not_read_is_cut_off() -> None:
    """What it was sent has no deadline of hypercorn's, and is shielded there."""

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
                await trio.lowlevel.checkpoint()
        finally:
            cut_off.set()

    cut_off = trio.Event()
    async with serving(endless) as server, server.connected() as client:
        await client.request("GET", "/")
        server.stop.set()
        with trio.fail_after(8):
            await server.ended.wait()
    assert cut_off.is_set()


async def test_connections_beyond_the_limit_are_closed_while_all_others_are_worked_for() -> None:
    connections = SlowConnections()
    limits = ServerLimits(max_connections=1)
    async with serving(an_api(connections=connections).app, limits) as server:
        async with server.connected() as first:
            await first.request("GET", SOME_CONNECTION)
            await connections.asked.wait()
            async with server.connected() as second:
                assert await second.is_closed()
            connections.go_on.set()
            assert (await first.answer())[0] == 404
        with trio.fail_after(10):
            while not await _is_served(server):
                await trio.lowlevel.checkpoint()


async def test_connections_that_ask_for_nothing_make_way_for_new_ones() -> None:
    """Those that never asked first; who holds as many as there may be keeps nobody out."""
    limits = ServerLimits(max_connections=3)
    async with (
        serving(an_api().app, limits) as server,
        server.connected() as kept,
        server.connected() as silent,
        server.connected() as slow,
        AsyncExitStack() as newcomers,
    ):
        await kept.request("GET", "/version")
        assert (await kept.answer())[0] == 200
        await slow.send(b"GET /version HT")
        for client in (silent, slow):
            newcomer = await newcomers.enter_async_context(server.connected())
            await newcomer.request("GET", "/version")
            assert (await newcomer.answer())[0] == 200
            assert await client.is_closed()
            await kept.request("GET", "/version")
            assert (await kept.answer())[0] == 200


async def _is_served(server: Serving) -> bool:
    """Whether a new connection is: the server hears of an old one's end in its own time."""
    async with server.connected() as client:
        with suppress(trio.BrokenResourceError):
            await client.request("GET", "/version")
            return bool(await client.stream.receive_some(1))
    return False


async def test_client_that_goes_away_cancels_its_request() -> None:
    gone = trio.Event()

    class Waiting:
        async def get(self, connection_id: ConnectionId) -> Connection | None:
            asked.set()
            try:
                await trio.sleep_forever()
            finally:
                gone.set()

    asked = trio.Event()
    async with serving(an_api(connections=Waiting()).app) as server:
        async with server.connected() as client:
            await client.request("GET", SOME_CONNECTION)
            await asked.wait()
        with trio.fail_after(5):
            await gone.wait()


async def test_client_that_has_nothing_more_to_say_gets_its_answer() -> None:
    """As `socat` and `nc -N` do: the request, the end of the stream, then the answer is read."""
    slow = SlowConnections()
    async with serving(an_api(connections=slow).app, PATIENT) as server:
        async with server.connected() as client:
            await client.request("GET", SOME_CONNECTION)
            await client.stream.send_eof()
            await slow.asked.wait()
            slow.go_on.set()
            status, _, body = await client.answer()
            assert (status, json.loads(body)["code"]) == (404, "FET-1001")
            assert await client.is_closed()
        async with server.connected() as client:
            for _ in range(2):
                await client.request("GET", "/version")
            await client.stream.send_eof()
            assert [(await client.answer())[0] for _ in range(2)] == [200, 200]
            assert await client.is_closed()


async def test_request_that_ends_half_way_is_refused_at_once() -> None:
    async with serving(an_api().app, PATIENT) as server, server.connected() as client:
        await client.send(b"POST /v1/fetcher HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n{")
        await client.stream.send_eof()
        assert (await client.answer())[0] == 400
        assert await client.is_closed()


async def test_requests_sent_at_once_are_not_worked_on_once_their_client_has_gone() -> None:
    asked: list[str] = []
    go_on = trio.Event()

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        if asked.count("/many") > 1:
            await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [NO_BODY]})
        await send({"type": "http.response.body", "body": b""})

    async with serving(counting, replace(PATIENT, max_connections=1)) as server:
        async with server.connected() as client:
            await client.send(b"GET /many HTTP/1.1\r\nHost: t\r\n\r\n" * 300)
            assert (await client.answer())[0] == 200
            # gone without a word: what comes to it is reset
            reset = bytes((1, *[0] * 7))
            client.stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, reset)
        go_on.set()
        # while it is worked for, its connection is the only one that there may be
        with trio.fail_after(10):
            while not await _is_served(server):
                await trio.lowlevel.checkpoint()
    assert 2 <= asked.count("/many") < 10
