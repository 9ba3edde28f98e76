"""A client whose scripts answer what a test says; it needs no server and no network."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest
from redis.asyncio import Redis

from fetcher.adapters.redis.server import RedisServer
from fetcher.bridge import open_asyncio
from fetcher.ports import Probe, ProbeResult, ProbeStatus


class FakeRedis:
    """``answer`` is what every command gives, or raises."""

    def __init__(self) -> None:
        self.answer: object = None
        self.calls = 0

    def register_script(self, _text: str) -> Callable[..., Awaitable[object]]:
        async def script(*, keys: Sequence[str], args: Sequence[object]) -> object:
            assert keys
            assert args
            return self._answer()

        return script

    async def delete(self, _key: str) -> object:
        return self._answer()

    async def hdel(self, _key: str, _field: str) -> object:
        return self._answer()

    def _answer(self) -> object:
        self.calls += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@asynccontextmanager
async def a_server(client: FakeRedis) -> AsyncIterator[RedisServer]:
    async def check() -> ProbeResult:
        return ProbeResult(status=ProbeStatus.UP)

    probe = Probe(name="redis", timeout_seconds=1, check=check)
    async with open_asyncio(pytest.fail):
        yield RedisServer(cast("Redis", client), probe=probe)
