"""What every limiter does (spec rest-api 8.7); how it refills is told by the implementations."""

import trio

from fetcher import ports


async def taken(limiter: ports.TestLimiter, key: str) -> int:
    """How many can be taken at once."""
    count = 0
    while await limiter.take(key) == 0:
        count += 1
    return count


async def test_ten_at_once_then_a_wait_of_six_seconds_at_most(
    limiter: ports.TestLimiter, own: str
) -> None:
    assert await taken(limiter, own) == 10
    assert 5.0 < await limiter.take(own) <= 6.0


async def test_a_refused_take_costs_nothing(limiter: ports.TestLimiter, own: str) -> None:
    await taken(limiter, own)
    waits = [await limiter.take(own) for _ in range(20)]
    assert all(0 < wait <= 6.0 for wait in waits)
    assert waits == sorted(waits, reverse=True)


async def test_each_key_has_its_own_bucket(limiter: ports.TestLimiter, own: str) -> None:
    assert await taken(limiter, own) == 10
    assert await taken(limiter, f"schema:{own}") == 10


async def test_the_same_id_under_two_tenants_has_separate_buckets(
    limiter: ports.TestLimiter, own: str
) -> None:
    assert await taken(limiter, f"tenant:t1:{own}") == 10
    assert await taken(limiter, f"tenant:t2:{own}") == 10
    assert await taken(limiter, own) == 10
    assert await limiter.take(f"tenant:t1:{own}") > 0


async def test_those_who_take_at_once_share_ten(limiter: ports.TestLimiter, own: str) -> None:
    waits: list[float] = []

    async def take() -> None:
        waits.append(await limiter.take(own))

    async with trio.open_nursery() as nursery:
        for _ in range(25):
            nursery.start_soon(take)
    assert waits.count(0) == 10
    assert len(waits) == 25
