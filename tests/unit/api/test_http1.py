"""The idle deadline of one HTTP/1 connection, on a clock of the test's own."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import wrap_app
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.api.http1 import ClientStream, Connection

IDLE_SECONDS = 10
REQUEST = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


class Application:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.go_on = trio.Event()
        self.go_on.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.go_on.wait()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"hi", "more_body": False})


class Peer:
    """The client's side. What it sends is there before any other task runs again."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.app = Application()
        self.context = WorkerContext(None)

    def send(self, data: bytes) -> None:
        assert self._end.send(data) == len(data)

    def received(self) -> bytes | None:
        """What has come until now; None where the connection is closed."""
        try:
            return self._end.recv(65536) or None
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            return None

    async def serve(self, stream: trio.SocketStream) -> None:
        config = Config()
        config.keep_alive_timeout = IDLE_SECONDS
        await Connection(
            wrap_app(self.app, 0, "asgi"),
            config,
            self.context,
            ClientStream(stream, send_seconds=30),
            half_closed_seconds=0.1,
        )


@asynccontextmanager
async def connected() -> AsyncIterator[Peer]:
    near, far = socket.socketpair()
    near.setblocking(False)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(far))
    peer = Peer(near)
    with near:
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(peer.serve, stream)
            await wait_all_tasks_blocked()
            yield peer
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("turn", range(8))
async def test_request_in_the_tick_of_the_idle_deadline_leaves_the_connection_one(
    mock_clock: MockClock, turn: int
) -> None:
    """Which of both comes first in a tick is drawn by trio: every turn must hold."""
    async with connected() as peer:
        peer.send(REQUEST)
        mock_clock.jump(IDLE_SECONDS)
        await wait_all_tasks_blocked()
        first = peer.received()
        assert first is None or first.endswith(b"hi")
        mock_clock.jump(IDLE_SECONDS)
        await wait_all_tasks_blocked()
        assert first is None or peer.received() is None


async def test_connection_has_its_idle_time_anew_after_each_request(mock_clock: MockClock) -> None:
    async with connected() as peer:
        for _ in range(3):
            mock_clock.jump(IDLE_SECONDS - 1)
            peer.send(REQUEST)
            await wait_all_tasks_blocked()
            assert (peer.received() or b"").endswith(b"hi")
        mock_clock.jump(IDLE_SECONDS)
        await wait_all_tasks_blocked()
        assert peer.received() is None


async def test_request_that_takes_longer_than_the_idle_time_is_answered(
    mock_clock: MockClock,
) -> None:
    async with connected() as peer:
        peer.app.go_on = trio.Event()
        peer.send(REQUEST)
        await wait_all_tasks_blocked()
        mock_clock.jump(5 * IDLE_SECONDS)
        await wait_all_tasks_blocked()
        assert peer.received() == b""
        peer.app.go_on.set()
        await wait_all_tasks_blocked()
        assert (peer.received() or b"").endswith(b"hi")


@pytest.mark.parametrize("is_busy", [False, True])
async def test_stop_of_the_server_ends_a_connection_once_it_is_idle(
    mock_clock: MockClock, is_busy: bool
) -> None:
    async with connected() as peer:
        peer.app.go_on = trio.Event()
        if is_busy:
            peer.send(REQUEST)
            await wait_all_tasks_blocked()
        await peer.context.terminated.set()
        await wait_all_tasks_blocked()
        assert peer.received() == (b"" if is_busy else None)
        peer.app.go_on.set()
        await wait_all_tasks_blocked()
        if is_busy:
            assert (peer.received() or b"").endswith(b"hi")
        assert peer.received() is None
