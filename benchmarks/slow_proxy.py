"""A proxy to the benchmarks' PostgreSQL that pauses after every batch of the server's bytes.

``python -m benchmarks.slow_proxy`` prints its port and serves until its input ends. It is a process
of its own: it stands for a network, whose work is not the job's.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from subprocess import PIPE
from typing import Final

import trio

from benchmarks.postgresql_tables import server

BATCH_BYTES: Final = 1024 * 1024
PAUSE_SECONDS: Final = 0.2
CHUNK_BYTES: Final = 256 * 1024


@asynccontextmanager
async def slow_proxy() -> AsyncIterator[int]:
    """The port of a proxy that runs until the context ends."""
    command = [sys.executable, "-m", "benchmarks.slow_proxy"]
    async with trio.open_nursery() as nursery:
        start = partial(trio.run_process, command, stdin=PIPE, stdout=PIPE)
        process = await nursery.start(start)
        yield int((await process.stdout.receive_some()).decode())
        await process.stdin.aclose()


async def serve() -> None:
    address = server()

    async def talk(client: trio.SocketStream) -> None:
        upstream = await trio.open_tcp_stream(address["host"], int(address["port"]))
        async with upstream, trio.open_nursery() as nursery:
            nursery.start_soon(_copied, client, upstream)
            await _slowed(upstream, client)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, talk, 0)
        print(listeners[0].socket.getsockname()[1], flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()


async def _copied(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    try:
        async for chunk in source:
            await sink.send_all(chunk)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


async def _slowed(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    passed = 0
    try:
        while chunk := await source.receive_some(CHUNK_BYTES):
            await sink.send_all(chunk)
            passed += len(chunk)
            if passed >= BATCH_BYTES:
                passed = 0
                await trio.sleep(PAUSE_SECONDS)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


if __name__ == "__main__":
    trio.run(serve)
