"""Names on the asyncio side: whose resolver answers, and whose does not."""

import asyncio
import socket
import threading

import pytest
import trio
import trio.testing

from fetcher.bridge import open_asyncio, run_asyncio
from tests.servers.waiting import eventually
from tests.unit.test_bridge import unexpected


async def test_a_name_that_nobody_resolves_does_not_hold_a_call_that_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop's own look-up waits for its thread, whose end no deadline brings nearer."""
    ended = threading.Event()

    def hang(host: str, port: int, family: int, kind: int, proto: int, flags: int) -> object:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        ended.wait(20)
        raise OSError

    async def connect() -> None:
        await asyncio.open_connection("redis.test", 6379)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    async with open_asyncio(unexpected):
        started = trio.current_time()
        try:
            with trio.move_on_after(0.1) as scope:
                await run_asyncio(connect)
            assert scope.cancelled_caught
            assert trio.current_time() - started < 5
        finally:
            ended.set()


async def test_names_that_nobody_resolves_hold_no_thread_that_others_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()
    hung: list[str] = []

    def hang(host: str, *asked: int) -> object:
        if asked[-1] & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        if host.startswith("silent"):
            hung.append(host)
            ended.wait(20)
        return [host]

    async def look_up(host: str) -> object:
        return await asyncio.get_running_loop().getaddrinfo(host, 6379)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    async with open_asyncio(unexpected):
        try:
            with trio.fail_after(10):
                async with trio.open_nursery() as nursery:
                    for number in range(60):
                        nursery.start_soon(run_asyncio, look_up, f"silent{number % 15}")
                    await trio.testing.wait_all_tasks_blocked(0.05)
                    await eventually(lambda: len(hung) >= 30, deadline_seconds=5)
                    nursery.cancel_scope.cancel()
                assert len(hung) == 2 * len(set(hung)) == 30, "two threads a name"
                assert await run_asyncio(look_up, "db.test") == ["db.test"]
                assert await trio.to_thread.run_sync(len, "four") == 4
        finally:
            ended.set()


async def test_names_are_resolved_and_failures_are_those_of_the_resolver() -> None:
    async def look_up(host: str) -> object:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, 6379, type=socket.SOCK_STREAM)
        return {address[4][:2] for address in found}

    async with open_asyncio(unexpected):
        assert await run_asyncio(look_up, "127.0.0.1") == {("127.0.0.1", 6379)}
        with pytest.raises(OSError, match=r"not known|No address"):
            await run_asyncio(look_up, "nowhere.invalid")
