"""Redis servers for tests: the shared one cleaned up behind us, and ones of the test's own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio
from redis import Redis
from redis.exceptions import RedisError

from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.server import RedisServer, open_redis
from fetcher.bridge import open_asyncio
from scripts.servers.daemons import Daemon, free_port, start, stop
from scripts.servers.launches import executable
from tests.servers.waiting import eventually_sync

BOOT_SECONDS = 20.0


def redis_address_of(url: str) -> RedisAddress:
    parts = urlsplit(url)
    return RedisAddress(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 6379,
        user=parts.username or "",
        password=parts.password or "",
        database=int(parts.path.strip("/") or 0),
        tls=parts.scheme == "rediss",
    )


@asynccontextmanager
async def opened_redis(address: RedisAddress) -> AsyncIterator[RedisServer]:
    async with open_asyncio(pytest.fail), open_redis(address) as server:
        yield server


class OwnRedis:
    """A Redis of the test's own: it can be killed and started again, empty."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        program = executable("redis-server", "valkey-server")
        if program is None:
            pytest.fail("redis-server is not installed: make services", pytrace=False)
        port = free_port()
        listen = ["--bind", "127.0.0.1", "--port", str(port)]
        keep_nothing = ["--save", "", "--appendonly", "no", "--dir", str(folder)]
        self._command = [program, *listen, *keep_nothing, *arguments]
        self._folder = folder
        self._daemons: list[Daemon] = []
        self.address = RedisAddress(host="127.0.0.1", port=port)
        self.client = Redis(host="127.0.0.1", port=port, socket_timeout=5)

    def start(self) -> None:
        log = self._folder / "log"
        self._daemons.append(start("Redis", self._command, log=log, folder=self._folder))
        eventually_sync(self._answers, deadline_seconds=BOOT_SECONDS, what="redis answers")

    def kill(self) -> None:
        stop(self._daemons)
        self._daemons.clear()

    def _answers(self) -> bool:
        with suppress(RedisError):
            return bool(self.client.ping())
        return False


@contextmanager
def own_redis(folder: Path, *arguments: str) -> Iterator[OwnRedis]:
    server = OwnRedis(folder, *arguments)
    try:
        server.start()
        yield server
    finally:
        server.client.close()
        server.kill()


@asynccontextmanager
async def deaf_server() -> AsyncIterator[tuple[RedisAddress, list[int]]]:
    """Accepts, reads, and never answers; with the ports of those who have connected."""
    accepted: list[int] = []

    async def listen(stream: trio.SocketStream) -> None:
        accepted.append(stream.socket.getpeername()[1])
        with suppress(trio.BrokenResourceError):
            async for _ in stream:
                pass

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, listen, 0, host="127.0.0.1")
        listeners: list[trio.SocketListener] = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        yield RedisAddress(host="127.0.0.1", port=port), accepted
        nursery.cancel_scope.cancel()
