"""One HTTP/1 connection, by hypercorn's classes with what they lack (see ``server``)."""

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper
from hypercorn.typing import Event as StopEvent

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
    which sends an answer's head, body and end each for itself: three times the work of one, and
    which takes the end of what a client sends for its going away."""

    half_closed_seconds = 0.0
    """How long a request is still worked on after a client's last byte: the end of the stream looks
    the same whether the client has gone or only has nothing more to say (RFC 9112, 9.6)."""

    _head = b""
    _answered: trio.Event
    reading: trio.CancelScope
    """In which the connection is read. Ended with it: where an answer could not be sent the reader
    would wait for ever to go on with the requests that came behind."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._next_event = self.connection.next_event
        self.connection.next_event = self._event_to_answer  # type: ignore[method-assign]  # see there

    def _event_to_answer(self) -> Any:
        """Once an answer says that it is the last, what stands behind its request is nobody's:
        taken for a failure it would close the connection before that answer is out."""
        is_last = self.connection.their_state is h11.MUST_CLOSE
        return h11.NEED_DATA if is_last else self._next_event()

    async def handle(self, event: Event) -> None:
        is_last = self.connection.their_state is h11.MUST_CLOSE
        if is_last and isinstance(event, RawData) and event.data:
            return
        await super().handle(event)
        if isinstance(event, Closed):
            self.reading.cancel()
        if isinstance(event, RawData) and not event.data and self.stream is not None:
            with trio.move_on_after(self.half_closed_seconds):
                await self._answered.wait()

    async def _create_stream(self, request: h11.Request) -> None:
        self._answered = trio.Event()
        await super()._create_stream(request)

    async def _close_stream(self) -> None:
        await super()._close_stream()
        self._answered.set()

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
        self._is_awaited = self._has_ended = False
        self._scope = trio.CancelScope()
        self.deadline = math.inf
        """For ever while a request is worked on."""
        self.has_stopped = False
        """Once a request came."""

    async def restart(self, tasks: TaskGroup, action: Callable[[], Awaitable[None]]) -> None:
        self._move(trio.current_time() + self._seconds)
        if not self._is_awaited and not self._has_ended:
            self._is_awaited = True
            tasks.spawn(action)

    async def stop(self) -> None:
        self.has_stopped = True
        self._move(math.inf)

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._has_ended = True
        self._scope.cancel()

    async def passes(self, stopping: StopEvent) -> bool:
        """Wait until the connection was idle for too long, or is idle while the server stops.

        A request may come in the very tick in which the deadline fires: a scope that has fired
        stays cancelled wherever its deadline is moved to, so that the wait begins anew.
        """
        try:
            while not self._has_ended:
                with trio.CancelScope(deadline=self.deadline) as self._scope:
                    await stopping.wait()
                    return self.deadline < math.inf
                if trio.current_time() >= self.deadline:
                    return not self._has_ended
            return False
        finally:
            self._is_awaited = False

    def _move(self, deadline: float) -> None:
        self.deadline = self._scope.deadline = deadline


class Connection(TCPServer):
    """Hypercorn's connection, which would wait out its idle deadline after the client has left."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        client: "ClientStream",
        *,
        half_closed_seconds: float,
    ) -> None:
        super().__init__(
            app, config, context, {}, cast("trio.SSLStream[trio.SocketStream]", client)
        )
        self._half_closed_seconds = half_closed_seconds
        self._reading = trio.CancelScope()
        self._idle = _IdleDeadline(config.keep_alive_timeout)
        self.idle_task = self._idle  # type: ignore[assignment] # by its methods it is one

    @property
    def waits(self) -> bool:
        """For a request, or for the rest of its head: nothing is worked on."""
        return self._idle.deadline < math.inf

    @property
    def waits_until(self) -> float:
        """On trio's clock; the sooner, the longer it has been silent."""
        return self._idle.deadline

    @property
    def has_asked(self) -> bool:
        return self._idle.has_stopped

    @property
    def protocol(self) -> ProtocolWrapper:
        return self._protocol

    @protocol.setter
    def protocol(self, made: ProtocolWrapper) -> None:
        http1 = Http1(
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
        http1.half_closed_seconds = self._half_closed_seconds
        http1.reading = self._reading
        made.protocol = http1
        self._protocol = made

    async def _read_data(self) -> None:
        with self._reading:
            await super()._read_data()
        self._idle.end()

    async def _idle_timeout(self) -> None:
        if await self._idle.passes(self.context.terminated):
            with trio.CancelScope(shield=True):
                await self._initiate_server_close()
