"""The real server on a loopback socket: case 24 and 25, spec rest-api 2.2."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.api.server import BoundAddress, ServerLimits, serve_http, tell_listening
from fetcher.api.services import HttpSettings
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId
from tests.unit.api.harness import CONNECTIONS, JOBS, PRODUCT, a_body, an_api

LOOPBACK = "127.0.0.1:0"
QUICK = ServerLimits(idle_seconds=1, send_seconds=1, graceful_seconds=2)


class Serving:
    """A running server; ``stop`` asks it to end, ``ended`` tells that it has."""

    def __init__(self) -> None:
        self.stop = trio.Event()
        self.ended = trio.Event()
        self.addresses: Sequence[BoundAddress] = ()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Client"]:
        address = self.addresses[0]
        stream = await trio.open_tcp_stream(address.host, address.port)
        async with stream:
            yield Client(stream)


class Client:
    """Speaks HTTP/1.1 by hand."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def request(self, method: str, path: str, body: bytes = b"", *lines: str) -> None:
        head = [f"{method} {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *lines]
        await self.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case, body by its length."""
        head = await self._until(b"\r\n\r\n")
        status_line, *lines = head.decode().removesuffix("\r\n\r\n").split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            self._buffer += await self._more()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return int(status_line.split()[1]), headers, body

    async def is_closed(self) -> bool:
        """Wait for the server to close the connection."""
        with trio.fail_after(10), suppress(trio.BrokenResourceError):
            while await self.stream.receive_some(65536):
                pass
        return True

    async def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._buffer += await self._more()
        head, _, self._buffer = self._buffer.partition(mark)
        return head + mark

    async def _more(self) -> bytes:
        with trio.fail_after(10):
            received = bytes(await self.stream.receive_some(65536))
        assert received, "the server closed the connection"
        return received


@asynccontextmanager
async def serving(app: Any, limits: ServerLimits = QUICK) -> AsyncIterator[Serving]:
    server = Serving()

    def note(addresses: Sequence[BoundAddress]) -> None:
        server.addresses = addresses

    async def run(*, task_status: "trio.TaskStatus[None]") -> None:
        await serve_http(
            app,
            address=LOOPBACK,
            stop=server.stop,
            limits=limits,
            on_listening=note,
            task_status=task_status,
        )
        server.ended.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        yield server
        server.stop.set()
        with trio.fail_after(10):
            await server.ended.wait()


class SlowConnections:
    """A connection store whose answers wait for the test."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.go_on = trio.Event()

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        self.asked.set()
        await self.go_on.wait()
        return None


SOME_CONNECTION = f"{CONNECTIONS}/{'0' * 32}"


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


# --- bodies and heads ------------------------------------------------------------------------


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


# --- clients that do not read, and too many of them ------------------------------------------


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


async def test_connections_beyond_the_limit_are_closed_at_once() -> None:
    limits = ServerLimits(max_connections=1)
    async with serving(an_api().app, limits) as server:
        async with server.connected() as first:
            await first.request("GET", "/version")
            await first.answer()
            async with server.connected() as second:
                assert await second.is_closed()
        with trio.fail_after(10):
            while not await _is_served(server):
                await trio.lowlevel.checkpoint()


async def _is_served(server: Serving) -> bool:
    """Whether a new connection is: the server hears of an old one's end in its own time."""
    async with server.connected() as client:
        with suppress(trio.BrokenResourceError):
            await client.request("GET", "/version")
            return bool(await client.stream.receive_some(1))
    return False


async def test_crash_of_the_application_ends_its_connection_only() -> None:
    async def crashing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("canary")

    async with serving(crashing) as server:
        for _ in range(2):
            async with server.connected() as client:
                await client.request("GET", "/")
                assert await client.is_closed()


# --- the end ---------------------------------------------------------------------------------


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
        assert b"retry: 1000" in await client._until(b"\n\n\r\n")
        api.services.stopping.set()
        began = trio.current_time()
        server.stop.set()
        assert await client.is_closed()
        await server.ended.wait()
        assert trio.current_time() - began < 1


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


async def test_server_says_nothing_on_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    with capture_logs():
        async with serving(an_api().app) as server, server.connected() as client:
            await client.request("GET", "/nope")
            await client.answer()
    assert capfd.readouterr() == ("", "")
