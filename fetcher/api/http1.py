"""One HTTP/1 connection, by hypercorn's classes with what they lack (see ``server``)."""

import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper

_Sendable: TypeAlias = h11.Data | h11.EndOfMessage | h11.InformationalResponse | h11.Response


class ClientStream:
    """The stream as hypercorn's connection class uses it, with a deadline on every send."""

    def __init__(self, stream: trio.SocketStream, *, send_seconds: float) -> None:
        self._stream = stream
        self._send_seconds = send_seconds

    @property
    def socket(self) -> trio.socket.SocketType:
        return self._stream.socket

    async def send_all(self, data: bytes) -> None:
        """Raise BrokenResourceError where the client does not take it in time."""
        with trio.move_on_after(self._send_seconds) as scope:
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            self.abort()
            raise trio.BrokenResourceError("the client does not read")

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def abort(self) -> None:
        self._stream.socket.close()


class Http1(H11Protocol):
    """Hypercorn's HTTP/1, which would turn into HTTP/2 where a client asks for it or assumes it,
    and which sends an answer's head, body and end each for itself: three times the work of one."""

    _head = b""

    async def _send_h11_event(self, event: _Sendable) -> None:
        """The head waits for what follows it, which is never long in coming."""
        try:
            data = self.connection.send(event) or b""
        except h11.LocalProtocolError:
            if self.connection.their_state is not h11.ERROR:
                raise
            return
        if isinstance(event, h11.Response):
            self._head = data
            return
        whole, self._head = self._head + data, b""
        if whole:
            await self.send(RawData(data=whole))

    async def _check_protocol(self, event: object) -> None:
        """An upgrade may be ignored (RFC 9110, 7.8); HTTP/2's preface is answered as a request."""


class _IdleDeadline:
    """Hypercorn's idle task, which would be started and cancelled with every request, as one task a
    connection whose deadline moves."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_started = False
        self.is_idle = False
        self.scope = trio.CancelScope()

    async def restart(self, tasks: TaskGroup, action: Callable[[], Awaitable[None]]) -> None:
        self.is_idle = True
        self.scope.deadline = trio.current_time() + self._seconds
        if not self._is_started:
            self._is_started = True
            tasks.spawn(action)

    async def stop(self) -> None:
        self.is_idle = False
        self.scope.deadline = math.inf

    def end(self) -> None:
        self.is_idle = False
        self.scope.cancel()


class Connection(TCPServer):
    """Hypercorn's connection, which would wait out its idle deadline after the client has left."""

    def __init__(
        self, app: AppWrapper, config: Config, context: WorkerContext, client: "ClientStream"
    ) -> None:
        super().__init__(
            app, config, context, {}, cast("trio.SSLStream[trio.SocketStream]", client)
        )
        self._idle = _IdleDeadline(config.keep_alive_timeout)
        self.idle_task = self._idle  # type: ignore[assignment] # by its methods it is one

    @property
    def protocol(self) -> ProtocolWrapper:
        return self._protocol

    @protocol.setter
    def protocol(self, made: ProtocolWrapper) -> None:
        made.protocol = Http1(
            made.app,
            made.config,
            made.context,
            made.task_group,
            made.state,
            made.ssl,
            made.client,
            made.server,
            made.send,
        )
        self._protocol = made

    async def _read_data(self) -> None:
        await super()._read_data()
        self._idle.end()

    async def _idle_timeout(self) -> None:
        with self._idle.scope:
            await self.context.terminated.wait()
        if self._idle.is_idle:
            with trio.CancelScope(shield=True):
                await self._initiate_server_close()
