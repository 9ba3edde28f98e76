"""A proxy that reads AMQP's frames, and loses or replaces what is said of one message."""

import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import trio
from pamqp import commands, frame, header

CONNECT_SECONDS: Final = 10.0
GONE: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
FRAME_HEAD: Final = struct.Struct(">BHI")
METHOD_FRAME: Final = 1
PREAMBLE_BYTES: Final = len(header.ProtocolHeader().marshal())
"""What a client says before its first frame."""
INTERNAL_ERROR: Final = 541


class Spoken(StrEnum):
    """What the fault is about."""

    WORK = "work message"
    EVENT = "event"
    SETTLEMENT = "delivery's acknowledgement"


class AmqpFault(StrEnum):
    LOST = "cut ahead of it"
    """It does not arrive, and the connection is cut."""
    UNANSWERED = "taken, and no confirm"
    CUT = "taken, and cut"
    NACKED = "taken, and nack"
    CHANNEL_CLOSED = "taken, and its channel closed (541)"


@dataclass(frozen=True, slots=True)
class Frame:
    data: bytes
    channel: int
    said: object
    """A method, or None for what is none."""


class AmqpFaultProxy:
    """``port`` of the loopback address leads to the broker."""

    def __init__(self, host: str, port: int, *, work_queue: str, events_exchange: str) -> None:
        self.upstream = (host, port)
        self.struck = 0
        """How often the fault was met since it was armed: once at the most."""
        self._routes = {("", work_queue): Spoken.WORK}
        self._exchange = events_exchange
        self._spoken: Spoken | None = None
        self._fault: AmqpFault | None = None
        listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = listening.getsockname()[1]
        self._listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))

    def arm(self, spoken: Spoken, fault: AmqpFault | None) -> None:
        """The next of these meets the fault."""
        self._spoken, self._fault, self.struck = spoken, fault, 0

    async def run(self) -> None:
        """Serve until cancelled."""
        await trio.serve_listeners(self._serve, [self._listener])

    def fault_of(self, said: object) -> AmqpFault | None:
        """Of what a client says; it is used up by that."""
        if self._fault is None or self.struck or self._is_about(said) is not self._spoken:
            return None
        self.struck = 1
        return self._fault

    def _is_about(self, said: object) -> Spoken | None:
        if isinstance(said, commands.Basic.Ack):
            return Spoken.SETTLEMENT
        if not isinstance(said, commands.Basic.Publish):
            return None
        if said.exchange == self._exchange:
            return Spoken.EVENT
        return self._routes.get((said.exchange, said.routing_key))

    async def _serve(self, client: trio.SocketStream) -> None:
        with suppress(*GONE):
            async with client:
                with trio.fail_after(CONNECT_SECONDS):
                    server = await trio.open_tcp_stream(*self.upstream)
                async with server:
                    await _Connection(self, client, server).run()


class _Connection:
    def __init__(
        self, proxy: AmqpFaultProxy, client: trio.SocketStream, server: trio.SocketStream
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._awaited: dict[int, AmqpFault] = {}
        """By channel, what becomes of the next confirm on it."""
        self._closed: set[int] = set()
        """Channels that both sides were told are closed: the broker hears of them no more."""
        self._ending: set[int] = set()
        """The same, until the broker has said so itself: the client, which may have opened the
        channel anew, hears nothing of the former one."""

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for way in (self._up, self._down):
                nursery.start_soon(self._until_gone, way, nursery.cancel_scope)

    async def _until_gone(
        self, way: Callable[[], Awaitable[None]], scope: trio.CancelScope
    ) -> None:
        with suppress(*GONE):
            await way()
        scope.cancel()

    async def _up(self) -> None:
        async with aclosing(frames(self._client, skipped_bytes=PREAMBLE_BYTES)) as found:
            async for each in found:
                if isinstance(each.said, commands.Channel.Open):
                    self._closed.discard(each.channel)
                if each.channel in self._closed:
                    continue
                fault = self._proxy.fault_of(each.said)
                if fault is AmqpFault.LOST:
                    return
                await self._server.send_all(each.data)
                if fault is None:
                    continue
                if isinstance(each.said, commands.Basic.Publish):
                    self._awaited[each.channel] = fault
                elif await self._is_cut(fault, each):
                    return

    async def _down(self) -> None:
        async with aclosing(frames(self._server)) as found:
            async for each in found:
                if each.channel in self._ending:
                    if isinstance(each.said, commands.Channel.CloseOk):
                        self._ending.discard(each.channel)
                    continue
                fault = None
                if isinstance(each.said, commands.Basic.Ack):
                    fault = self._awaited.pop(each.channel, None)
                if fault is None:
                    await self._client.send_all(each.data)
                elif await self._is_cut(fault, each):
                    return

    async def _is_cut(self, fault: AmqpFault, acknowledgement: Frame) -> bool:
        """What happens instead of it, or after it; whether that is the connection's end."""
        channel, said = acknowledgement.channel, acknowledgement.said
        if fault is AmqpFault.NACKED and isinstance(said, commands.Basic.Ack):
            nack = commands.Basic.Nack(delivery_tag=said.delivery_tag, requeue=False)
            await self._client.send_all(frame.marshal(nack, channel))
        elif fault is AmqpFault.CHANNEL_CLOSED:
            self._closed.add(channel)
            self._ending.add(channel)
            for side in (self._client, self._server):
                closing = commands.Channel.Close(INTERNAL_ERROR, "INTERNAL_ERROR", 0, 0)
                await side.send_all(frame.marshal(closing, channel))
        return fault is AmqpFault.CUT


async def frames(
    stream: trio.abc.ReceiveStream, *, skipped_bytes: int = 0
) -> AsyncGenerator[Frame, None]:
    """Whole ones, until the stream's end; the first bytes, if any are no frame, as one."""
    pending = b""
    async for chunk in stream:
        pending += chunk
        if 0 < skipped_bytes <= len(pending):
            yield Frame(pending[:skipped_bytes], 0, None)
            pending, skipped_bytes = pending[skipped_bytes:], 0
        while not skipped_bytes and len(pending) >= FRAME_HEAD.size:
            kind, channel, payload_bytes = FRAME_HEAD.unpack_from(pending)
            end = FRAME_HEAD.size + payload_bytes + 1
            if len(pending) < end:
                break
            data, pending = pending[:end], pending[end:]
            said = frame.unmarshal(data)[2] if kind == METHOD_FRAME else None
            yield Frame(data, channel, said)
