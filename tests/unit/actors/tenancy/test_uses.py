"""Counting who uses a tenant."""

import pytest
import trio
import trio.testing

from fetcher.actors.tenancy.uses import TenantClosed, TenantUses


async def test_it_is_unused_once_all_have_left(autojump_clock: trio.testing.MockClock) -> None:
    uses = TenantUses()

    async def use(seconds: float) -> None:
        with uses.enter():
            await trio.sleep(seconds)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use, 3)
        nursery.start_soon(use, 7)
        await trio.sleep(1)
        assert uses.count == 2
        assert uses.idle_seconds() == 0
        uses.close()
        await uses.until_unused()
        assert trio.current_time() == 7
    await trio.sleep(5)
    assert uses.idle_seconds() == 5


async def test_nobody_enters_once_it_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    uses = TenantUses()
    uses.close()
    with pytest.raises(TenantClosed), uses.enter():
        pytest.fail("it was entered")
    assert uses.count == 0
    await uses.until_unused()


async def test_a_use_that_fails_is_over(autojump_clock: trio.testing.MockClock) -> None:
    uses = TenantUses()
    await trio.sleep(4)
    with pytest.raises(KeyError), uses.enter():
        raise KeyError
    assert (uses.count, uses.last_used_at) == (0, 4)
    await uses.until_unused()
    with uses.enter():
        assert uses.count == 1
