"""MemoryTestLimiter (spec rest-api 8.7): 10 tests a connection, one more every 6 seconds."""

import pytest
import trio
from trio.testing import MockClock

from fetcher import ports
from fetcher.adapters.memory import MemoryTestLimiter
from fetcher.adapters.memory import limiter as limiter_module


async def taken(limiter: ports.TestLimiter, key: str = "c1") -> int:
    """How many can be taken at once."""
    count = 0
    while await limiter.take(key) == 0:
        count += 1
    return count


async def test_ten_at_once_then_a_wait_of_six_seconds(autojump_clock: MockClock) -> None:
    limiter = MemoryTestLimiter()
    assert await taken(limiter) == 10
    assert await limiter.take("c1") == 6.0


async def test_refused_take_costs_nothing(autojump_clock: MockClock) -> None:
    limiter = MemoryTestLimiter()
    await taken(limiter)
    for _ in range(50):
        assert await limiter.take("c1") == 6.0
    await trio.sleep(6)
    assert await limiter.take("c1") == 0


async def test_wait_shrinks_as_time_passes(autojump_clock: MockClock) -> None:
    limiter = MemoryTestLimiter()
    await taken(limiter)
    await trio.sleep(2.5)
    assert await limiter.take("c1") == pytest.approx(3.5)


async def test_whoever_waits_as_told_is_let_through(autojump_clock: MockClock) -> None:
    limiter = MemoryTestLimiter()
    await taken(limiter)
    await trio.sleep(0.1)
    for _ in range(100):
        wait = await limiter.take("c1")
        assert 0 < wait <= 6
        await trio.sleep(wait)
        assert await limiter.take("c1") == 0


async def test_bucket_never_holds_more_than_ten(autojump_clock: MockClock) -> None:
    limiter = MemoryTestLimiter()
    assert await taken(limiter) == 10
    await trio.sleep(18)
    assert await taken(limiter) == 3
    await trio.sleep(86_400)
    assert await taken(limiter) == 10


async def test_each_connection_has_its_own_bucket(autojump_clock: MockClock) -> None:
    limiter = MemoryTestLimiter()
    assert await taken(limiter, "c1") == 10
    assert await taken(limiter, "tenant:t1:c1") == 10


async def test_least_recently_used_keys_are_forgotten_beyond_the_bound(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_module, "MAX_KEYS", 3)
    limiter = MemoryTestLimiter()
    for key in ("a", "b", "c"):
        assert await taken(limiter, key) == 10
    assert await limiter.take("a") == 6.0
    assert await limiter.take("d") == 0
    assert len(limiter._buckets) == 3
    assert await limiter.take("a") == 6.0
    assert await taken(limiter, "b") == 10


async def test_bound_is_ten_thousand_keys() -> None:
    assert limiter_module.MAX_KEYS == 10_000
