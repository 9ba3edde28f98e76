"""Each fault on real sockets, before a server that gives back what it gets."""

import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from tests.faults.faults import AFTER_BYTES, Direction, Fault, Kind, drawn
from tests.faults.proxy import FaultProxy, fault_proxy
from tests.faults.proxy_thread import threaded_proxy
from tests.servers.waiting import eventually

DEADLINE_SECONDS = 5.0
QUIET_SECONDS = 0.1
"""How long nothing has to come before it is taken as nothing."""


@dataclass
class Echo:
    """It keeps what it got, and how each of its connections ended."""

    port: int = 0
    got: bytearray = field(default_factory=bytearray)
    reads: list[int] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    async def handle(self, stream: trio.SocketStream) -> None:
        try:
            async with stream:
                async for data in stream:
                    self.got += data
                    self.reads.append(len(data))
                    await stream.send_all(data)
            self.ends.append("closed")
        except trio.BrokenResourceError as broken:
            self.ends.append(type(broken.__cause__).__name__)


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    made = Echo(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, made.handle, listeners)
        yield made
        nursery.cancel_scope.cancel()


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[FaultProxy]:
    async with fault_proxy("127.0.0.1", echo.port) as opened:
        yield opened


async def connected(proxy: FaultProxy) -> trio.SocketStream:
    with trio.fail_after(DEADLINE_SECONDS):
        return await trio.open_tcp_stream("127.0.0.1", proxy.port)


async def read(stream: trio.SocketStream, count: int) -> bytes:
    """So many bytes; fewer where the other side closed."""
    found = b""
    with trio.fail_after(DEADLINE_SECONDS):
        while len(found) < count and (data := await stream.receive_some(count - len(found))):
            found += data
    return found


async def answer(stream: trio.SocketStream, data: bytes) -> bytes:
    await stream.send_all(data)
    return await read(stream, len(data))


async def is_quiet(stream: trio.SocketStream) -> bool:
    with trio.move_on_after(QUIET_SECONDS):
        await stream.receive_some(1)
        return False
    return True


async def how_it_ends(stream: trio.SocketStream) -> tuple[bytes, str]:
    """What still arrives, and then ``closed`` or the error's name."""
    found = b""
    with trio.fail_after(DEADLINE_SECONDS):
        try:
            while data := await stream.receive_some(65_536):
                found += data
        except trio.BrokenResourceError as broken:
            return found, type(broken.__cause__).__name__
    return found, "closed"


async def test_without_a_fault_all_bytes_and_both_ends_pass(proxy: FaultProxy, echo: Echo) -> None:
    sent = random.Random(1).randbytes(300_000)  # noqa: S311 - any bytes
    async with await connected(proxy) as stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, sent)
        assert await read(stream, len(sent)) == sent
        await stream.send_eof()
        assert await how_it_ends(stream) == (b"", "closed")
    assert (bytes(echo.got), echo.ends, proxy.accepted) == (sent, ["closed"], 1)


async def test_latency_holds_each_message_and_ends_with_its_turn(proxy: FaultProxy) -> None:
    async with await connected(proxy) as stream:
        assert await answer(stream, b"a") == b"a"
        proxy.turn(Fault(kind=Kind.LATENCY, latency_seconds=0.1, jitter_seconds=0.05))
        began = trio.current_time()
        assert await answer(stream, b"b") == b"b"
        assert trio.current_time() - began >= 0.2
        proxy.turn(Fault(kind=Kind.LATENCY, latency_seconds=60, direction=Direction.DOWN))
        await stream.send_all(b"c")
        assert await is_quiet(stream)


async def test_bandwidth_is_what_the_line_carries(proxy: FaultProxy, echo: Echo) -> None:
    async with await connected(proxy) as stream:
        proxy.turn(Fault(kind=Kind.BANDWIDTH, bytes_per_second=20_000, direction=Direction.UP))
        began = trio.current_time()
        assert await answer(stream, bytes(6_000)) == bytes(6_000)
        assert trio.current_time() - began >= 0.25  # the sixth piece needs no pause behind it
    assert len(echo.reads) > 1


async def test_slices_are_sent_one_by_one_with_pauses(proxy: FaultProxy, echo: Echo) -> None:
    sliced = Fault(kind=Kind.SLICER, slice_bytes=3, pause_seconds=0.01, direction=Direction.UP)
    async with await connected(proxy) as stream:
        proxy.turn(sliced)
        began = trio.current_time()
        assert await answer(stream, b"0123456789") == b"0123456789"
        assert trio.current_time() - began >= 0.03
    assert len(echo.reads) > 1


@pytest.mark.parametrize(
    ("kind", "end"), [(Kind.CUT, "closed"), (Kind.RESET, "ConnectionResetError")]
)
@pytest.mark.parametrize("direction", [Direction.UP, Direction.DOWN])
async def test_connection_ends_after_exactly_so_many_bytes(
    proxy: FaultProxy, echo: Echo, kind: Kind, end: str, direction: Direction
) -> None:
    async with await connected(proxy) as stream:
        assert await answer(stream, b"before") == b"before"
        proxy.turn(Fault(kind=kind, after_bytes=4, direction=direction))
        assert await answer(stream, b"123") == b"123"
        assert proxy.met == 0
        await stream.send_all(b"4567")
        found, how = await how_it_ends(stream)
    assert (how, proxy.met) == (end, 1)
    await eventually(lambda: echo.ends, deadline_seconds=DEADLINE_SECONDS)
    got = bytes(echo.got).removeprefix(b"before")
    if direction is Direction.DOWN:
        assert (found, got) == (b"4", b"1234567")
    else:
        assert got == b"1234"
    proxy.turn(None)
    async with await connected(proxy) as stream:
        assert await answer(stream, b"well") == b"well"


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        (Kind.CUT, "closed"),
        (Kind.RESET, "ConnectionResetError"),
        (Kind.REFUSE, "ConnectionResetError"),
    ],
)
async def test_idle_connection_ends_at_once(
    proxy: FaultProxy, echo: Echo, kind: Kind, end: str
) -> None:
    async with await connected(proxy) as stream:
        assert await answer(stream, b"a") == b"a"
        proxy.turn(Fault(kind=kind))
        assert await how_it_ends(stream) == (b"", end)
        assert proxy.met == 1
    await eventually(lambda: echo.ends, deadline_seconds=DEADLINE_SECONDS)
    assert echo.ends == [end]


@pytest.mark.parametrize("kind", [Kind.CUT, Kind.RESET])
async def test_newcomer_is_ended_before_the_server_hears_of_it(
    proxy: FaultProxy, echo: Echo, kind: Kind
) -> None:
    proxy.turn(Fault(kind=kind))
    # with RST the connecting itself may see it already
    with suppress(OSError):
        async with await connected(proxy) as stream:
            assert (await how_it_ends(stream))[0] == b""
    assert (proxy.accepted, bytes(echo.got), echo.ends) == (1, b"", [])


async def test_nobody_listens_while_it_refuses_and_the_port_stays(proxy: FaultProxy) -> None:
    port = proxy.port
    proxy.turn(Fault(kind=Kind.REFUSE))
    proxy.turn(Fault(kind=Kind.REFUSE))
    with socket.socket() as raw:
        assert raw.connect_ex(("127.0.0.1", port)) == 111  # ECONNREFUSED, at once
    assert proxy.accepted == 0
    proxy.turn(None)
    async with await connected(proxy) as stream:
        assert await answer(stream, b"back") == b"back"
    assert proxy.port == port


async def test_every_fault_may_come_while_bytes_are_being_passed(proxy: FaultProxy) -> None:
    """Turned in the same step of the loop in which they arrive, before or after each of them."""
    for kind in Kind:
        proxy.turn(None)
        with trio.fail_after(DEADLINE_SECONDS):
            streams = [await connected(proxy) for _ in range(20)]
            for stream in streams:
                assert await answer(stream, b"there") == b"there"
            await trio.testing.wait_all_tasks_blocked()
            for stream in streams:
                os.write(stream.socket.fileno(), b"on its way")
            await trio.lowlevel.checkpoint()
            proxy.turn(Fault(kind=kind))
            await trio.testing.wait_all_tasks_blocked()
            # it still serves: a task that never waits would hold up all others
            proxy.turn(None)
            async with await connected(proxy) as stream:
                assert await answer(stream, b"back") == b"back"
            for stream in streams:
                await stream.aclose()


async def test_blackhole_loses_bytes_and_what_lost_some_ends_with_it(
    proxy: FaultProxy, echo: Echo
) -> None:
    async with await connected(proxy) as idle, await connected(proxy) as busy:
        assert await answer(idle, b"i") == b"i"
        assert await answer(busy, b"b") == b"b"
        proxy.turn(Fault(kind=Kind.BLACKHOLE, after_bytes=2, direction=Direction.UP))
        await busy.send_all(b"1234")
        assert await read(busy, 2) == b"12"
        async with await connected(proxy) as late:
            await late.send_all(b"567")
            assert await read(late, 2) == b"56"
            assert await is_quiet(busy)
            proxy.turn(None)
            assert await how_it_ends(busy) == (b"", "closed")
            assert await how_it_ends(late) == (b"", "closed")
        assert await answer(idle, b"still") == b"still"
    assert bytes(echo.got) == b"ib1256still"


async def test_stalled_bytes_arrive_when_it_ends(proxy: FaultProxy, echo: Echo) -> None:
    async with await connected(proxy) as stream:
        proxy.stall()
        await stream.send_all(b"held")
        assert await is_quiet(stream)
        assert (bytes(echo.got), proxy.met) == (b"", 1)
        proxy.turn(None)
        assert await read(stream, 4) == b"held"


async def test_half_closed_to_the_client_the_server_still_hears(
    proxy: FaultProxy, echo: Echo
) -> None:
    async with await connected(proxy) as stream:
        assert await answer(stream, b"a") == b"a"
        proxy.turn(Fault(kind=Kind.HALF_CLOSE, after_bytes=2, direction=Direction.DOWN))
        await stream.send_all(b"bcd")
        assert await how_it_ends(stream) == (b"bc", "closed")
        await stream.send_all(b"e")
        await eventually(lambda: bytes(echo.got) == b"abcde", deadline_seconds=DEADLINE_SECONDS)
        proxy.turn(None)
        await stream.send_all(b"f")
        await eventually(lambda: bytes(echo.got) == b"abcdef", deadline_seconds=DEADLINE_SECONDS)
        assert echo.ends == []


async def test_half_closed_to_the_server_it_ends_and_so_does_the_client(
    proxy: FaultProxy, echo: Echo
) -> None:
    async with await connected(proxy) as stream:
        assert await answer(stream, b"a") == b"a"
        proxy.turn(Fault(kind=Kind.HALF_CLOSE, direction=Direction.UP))
        assert await how_it_ends(stream) == (b"", "closed")
    assert (echo.ends, bytes(echo.got)) == (["closed"], b"a")


async def test_what_stands_can_be_cut_while_newcomers_pass(proxy: FaultProxy) -> None:
    async with await connected(proxy) as stream:
        assert await answer(stream, b"a") == b"a"
        proxy.cut()
        assert await how_it_ends(stream) == (b"", "closed")
    async with await connected(proxy) as stream:
        assert await answer(stream, b"b") == b"b"
    assert proxy.accepted == 2


async def test_proxy_in_a_thread_is_turned_from_an_event_loop(echo: Echo) -> None:
    with threaded_proxy("127.0.0.1", echo.port) as proxy:
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            assert await answer(stream, b"a") == b"a"
            proxy.silence()
            await stream.send_all(b"lost")
            assert await is_quiet(stream)
            proxy.open()
            assert await how_it_ends(stream) == (b"", "closed")
        proxy.shut()
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            assert await how_it_ends(stream) == (b"", "closed")
        assert proxy.accepted == 2
    with socket.socket() as raw:
        assert raw.connect_ex(("127.0.0.1", proxy.port)) == 111


def test_the_same_seed_draws_the_same_faults() -> None:
    def series(seed: int) -> list[Fault]:
        chance = random.Random(seed)  # noqa: S311 - faults, no secret
        return [drawn(kind, chance) for kind in Kind for _ in range(20)]

    assert series(7) == series(7) != series(8)
    late = {fault.kind for fault in series(7) if fault.after_bytes}
    assert late == AFTER_BYTES
    assert {fault.direction for fault in series(7)} == set(Direction)


def test_a_fault_is_told_with_its_own_sizes() -> None:
    cut = Fault(kind=Kind.CUT, after_bytes=7, direction=Direction.UP, slice_bytes=3)
    assert str(cut) == "cut after 7 B, up"
    assert str(Fault(kind=Kind.BANDWIDTH, bytes_per_second=9)) == "bandwidth of 9 B/s, both"
