"""A TCP proxy whose connections meet faults, switched while they stand."""

import random
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from tests.faults.faults import AFTER_BYTES, Direction, Fault, Kind

CHUNK_BYTES: Final = 65_536
CONNECT_SECONDS: Final = 10.0
BACKLOG: Final = 128
STEPS_A_SECOND: Final = 20
"""So often a narrow line sends."""
GONE: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
ENDING: Final = frozenset({Kind.CUT, Kind.RESET, Kind.REFUSE})


class FaultProxy:
    """``port`` of the loopback address leads to the server. Made by :func:`fault_proxy`.

    Only tasks of its own await: what is turned is turned at once.
    """

    def __init__(self, host: str, port: int, *, seed: int = 0) -> None:
        self.upstream = (host, port)
        self.accepted = 0
        """Connections so far."""
        self.met = 0
        """How often the fault of now was felt: by bytes, or by a connection that it ended. A client
        that was refused is not heard of."""
        self.chance = random.Random(seed)  # noqa: S311 - jitter, no secret
        self._fault: Fault | None = None
        self._changed = trio.Event()
        self._connections: set[_Connection] = set()
        # Bound and never listening: the port stays ours while nobody listens at it.
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]
        self._listener: trio.socket.SocketType | None = None
        self._listen()

    @property
    def fault(self) -> Fault | None:
        return self._fault

    def turn(self, fault: Fault | None) -> None:
        """From now on that fault alone, or none."""
        self._fault, self.met = fault, 0
        self._changed.set()
        self._changed = trio.Event()
        if fault is None or fault.kind is not Kind.REFUSE:
            self._listen()
        else:
            self._stop_listening()
        for connection in list(self._connections):
            connection.meet(fault)

    def cut(self) -> None:
        """Close what is open now; new connections pass."""
        for connection in list(self._connections):
            connection.end(reset=False)

    def stall(self) -> None:
        """From now on bytes go nowhere, in either direction, until another turn."""
        self.turn(Fault(kind=Kind.STALL))

    async def changed(self) -> None:
        """Wait for the next turn."""
        await self._changed.wait()

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    if self._listener is None:
                        await self._changed.wait()
                        continue
                    with suppress(*GONE):
                        client, _ = await self._listener.accept()
                        nursery.start_soon(self._serve, trio.SocketStream(client))
        finally:
            self._stop_listening()
            self._place.close()

    async def _serve(self, client: trio.SocketStream) -> None:
        self.accepted += 1
        connection = _Connection(self, client)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    def _listen(self) -> None:
        if self._listener is None:
            listening = _bound(self.port)
            listening.listen(BACKLOG)
            self._listener = trio.socket.from_stdlib_socket(listening)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


class _Connection:
    """A client's connection and ours to the server; both are closed with it."""

    def __init__(self, proxy: FaultProxy, client: trio.SocketStream) -> None:
        self._proxy = proxy
        self._client = client
        self._ways: list[_Way] = []
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        async with self._client:
            with self._scope, suppress(*GONE, trio.TooSlowError):
                self.meet(self._proxy.fault)
                with trio.fail_after(CONNECT_SECONDS):
                    server = await trio.open_tcp_stream(*self._proxy.upstream)
                async with server:
                    self._ways = [
                        _Way(self._proxy, self, Direction.UP, self._client, server),
                        _Way(self._proxy, self, Direction.DOWN, server, self._client),
                    ]
                    self.meet(self._proxy.fault)
                    async with trio.open_nursery() as nursery:
                        for way in self._ways:
                            nursery.start_soon(self._run_way, way)

    async def _run_way(self, way: "_Way") -> None:
        try:
            await way.run()
        except GONE:
            self._scope.cancel()

    def meet(self, fault: Fault | None) -> None:
        """What a turn does at once, also to a connection on which nothing flows."""
        if any(way.has_lost for way in self._ways) and (
            fault is None or fault.kind is not Kind.BLACKHOLE
        ):
            self.end(reset=False)
        elif fault is not None and fault.kind in ENDING and fault.after_bytes == 0:
            self._proxy.met += 1
            self.end(reset=fault.kind is not Kind.CUT)
        elif fault is not None and fault.kind is Kind.HALF_CLOSE and fault.after_bytes == 0:
            for way in self._ways:
                if fault.concerns(way.direction):
                    self._proxy.met += 1
                    way.close_sink()

    def strike(self, fault: Fault, way: "_Way") -> None:
        """So many bytes as were to pass that way have passed."""
        self._proxy.met += 1
        if fault.kind in ENDING:
            self.end(reset=fault.kind is not Kind.CUT)
        elif fault.kind is Kind.HALF_CLOSE:
            way.close_sink()

    def end(self, *, reset: bool) -> None:
        """A socket that lingers for 0 s is closed by RST."""
        if reset:
            for stream in (self._client, *(way.sink for way in self._ways)):
                with suppress(*GONE):
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._scope.cancel()


class _Way:
    """One direction of a connection."""

    def __init__(
        self,
        proxy: FaultProxy,
        connection: _Connection,
        direction: Direction,
        source: trio.SocketStream,
        sink: trio.SocketStream,
    ) -> None:
        self.direction = direction
        self.sink = sink
        self.has_lost = False
        """Bytes, or the end of them, that the receiver will never see."""
        self._proxy = proxy
        self._connection = connection
        self._source = source
        self._sink_is_closed = False
        self._met: Fault | None = None
        self._passed_bytes = 0

    async def run(self) -> None:
        """Until the sender's end; that is passed on like bytes."""
        while True:
            data = await self._source.receive_some(CHUNK_BYTES)
            await self._pass(data)
            if not data:
                return

    def close_sink(self) -> None:
        """Whatever comes from now on has no receiver."""
        self._sink_is_closed = True
        with suppress(*GONE):
            self.sink.socket.shutdown(socket.SHUT_WR)

    async def _pass(self, data: bytes | bytearray) -> None:
        """A turn holds from the next piece on."""
        while True:
            fault = self._fault_now()
            if fault is not None and fault.kind not in AFTER_BYTES:
                self._proxy.met += 1
            if fault is not None and fault.kind is Kind.STALL:
                await self._proxy.changed()
                continue
            if fault is not None and self._is_over(fault):
                if fault.kind is Kind.BLACKHOLE:
                    self.has_lost = True
                    self._proxy.met += 1
                return
            if fault is not None and fault.kind is Kind.LATENCY:
                jitter_seconds = fault.jitter_seconds * self._proxy.chance.random()
                await trio.sleep(fault.latency_seconds + jitter_seconds)
            size, pause_seconds = self._measured(fault, len(data))
            await self._send(data[:size])
            self._passed_bytes += len(data[:size])
            if fault is not None and self._is_over(fault) and self._proxy.fault is fault:
                self._connection.strike(fault, self)
            data = data[size:]
            if pause_seconds:
                await trio.sleep(pause_seconds)
            if not data:
                return

    async def _send(self, data: bytes | bytearray) -> None:
        try:
            if data and not self._sink_is_closed:
                await self.sink.send_all(data)
            elif not data:
                self.close_sink()
        except GONE:
            if not self._sink_is_closed:  # else the fault came while this was being sent
                raise

    def _is_over(self, fault: Fault) -> bool:
        """What it lets pass has passed: of one that refuses, which may come between a piece's
        arrival and its passing on, that is nothing."""
        begins = fault.kind in AFTER_BYTES or fault.kind is Kind.REFUSE
        return begins and self._passed_bytes >= fault.after_bytes

    def _measured(self, fault: Fault | None, length: int) -> tuple[int, float]:
        """How many bytes pass in one piece, and the pause behind it."""
        if fault is None or fault.kind is Kind.LATENCY:
            return length, 0.0
        if fault.kind is Kind.BANDWIDTH:
            size = min(length, max(1, fault.bytes_per_second // STEPS_A_SECOND))
            return size, size / fault.bytes_per_second
        if fault.kind is Kind.SLICER:
            return fault.slice_bytes, fault.pause_seconds
        return fault.after_bytes - self._passed_bytes, 0.0

    def _fault_now(self) -> Fault | None:
        fault = self._proxy.fault
        if fault is not self._met:
            self._met, self._passed_bytes = fault, 0
        # One that ends connections has ended this one, and its task will hear of it.
        return fault if fault is not None and fault.concerns(self.direction) else None


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
    except OSError:
        made.close()
        raise
    return made


@asynccontextmanager
async def fault_proxy(host: str, port: int, *, seed: int = 0) -> AsyncGenerator[FaultProxy, None]:
    """In the event loop of the caller, until the block ends."""
    proxy = FaultProxy(host, port, seed=seed)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(proxy.run)
        yield proxy
        nursery.cancel_scope.cancel()
