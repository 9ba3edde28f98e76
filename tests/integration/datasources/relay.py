"""A TCP relay that misbehaves: cuts, or goes silent, after some bytes of the server's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import trio


@dataclass(slots=True, kw_only=True)
class Relay:
    """``port`` to connect to. Bytes from the server are counted over each connection."""

    port: int = 0
    cut_after: int | None = None
    silent_after: int | None = None
    forwarded: int = 0
    reached: trio.Event = field(default_factory=trio.Event)
    """Set once the relay cuts or goes silent."""


@asynccontextmanager
async def relay(
    host: str, port: int, *, cut_after: int | None = None, silent_after: int | None = None
) -> AsyncIterator[Relay]:
    state = Relay(cut_after=cut_after, silent_after=silent_after)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_tcp, partial(_serve, state, host, port), 0, host="127.0.0.1")
        )
        state.port = listeners[0].socket.getsockname()[1]
        yield state
        nursery.cancel_scope.cancel()


async def _serve(state: Relay, host: str, port: int, client: trio.SocketStream) -> None:
    async with await trio.open_tcp_stream(host, port) as server, trio.open_nursery() as nursery:
        nursery.start_soon(_up, client, server, nursery.cancel_scope)
        await _down(state, server, client)
        nursery.cancel_scope.cancel()


async def _up(
    client: trio.SocketStream, server: trio.SocketStream, scope: trio.CancelScope
) -> None:
    try:
        async for chunk in client:
            await server.send_all(chunk)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


async def _down(state: Relay, server: trio.SocketStream, client: trio.SocketStream) -> None:
    while True:
        try:
            chunk = await server.receive_some(16384)
            if not chunk:
                return
            limit = state.cut_after if state.cut_after is not None else state.silent_after
            if limit is not None and state.forwarded + len(chunk) > limit:
                await client.send_all(chunk[: max(0, limit - state.forwarded)])
                state.reached.set()
                if state.silent_after is not None:
                    await trio.sleep_forever()
                return
            state.forwarded += len(chunk)
            await client.send_all(chunk)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
