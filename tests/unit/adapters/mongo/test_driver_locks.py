"""What pymongo's operations wait on is never lost, whenever they are cancelled."""

import pymongo.lock
import pytest
import trio
import trio.testing
from pymongo.lock import _async_cond_wait, _async_create_condition, _async_create_lock

from fetcher.adapters.mongo.driver_locks import keep_locks
from fetcher.bridge import open_asyncio, run_asyncio
from tests.servers.waiting import eventually


def test_pymongo_waits_by_the_name_that_is_replaced() -> None:
    keep_locks()
    assert "wait_for" in _async_cond_wait.__code__.co_names
    assert callable(pymongo.lock.wait_for)  # type: ignore[attr-defined] # imported there by name


async def test_lock_is_free_after_a_wait_was_cancelled_just_when_its_time_was_over() -> None:
    keep_locks()
    async with open_asyncio(pytest.fail):
        lock = _async_create_lock()
        condition = _async_create_condition(lock)
        has_lock = trio.Event()
        waits = trio.CancelScope()
        outcomes: list[bool] = []

        async def wait() -> None:
            async with lock:
                has_lock.set()
                await _async_cond_wait(condition, 0.02)

        async def waiter() -> None:
            with waits:
                await run_asyncio(wait)
            outcomes.append(waits.cancelled_caught)

        async def release() -> None:
            lock.release()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter)
            await has_lock.wait()
            # Free while it waits, and ours when its time is over: then it wants the lock again.
            await run_asyncio(lock.acquire)
            await eventually(lambda: not condition._waiters, deadline_seconds=5)
            waits.cancel()
            await trio.testing.wait_all_tasks_blocked()
            # Ended by now, it would have let go of a lock that is ours.
            assert outcomes == []
            await run_asyncio(release)
        assert outcomes == [True]
        with trio.fail_after(5):
            await run_asyncio(lock.acquire)
