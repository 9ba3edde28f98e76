"""Records asked for at the same time are read together, and nobody suffers from another's fate."""

from collections.abc import Mapping, Sequence

import pytest
import trio
import trio.testing

from fetcher.adapters.together import CALLS_AT_ONCE, GATHER_SECONDS, KEYS_A_CALL, Together
from fetcher.domain.errors import OperationRefused, PortUnavailable


class Store:
    """Keeps what it was asked. Its answers take half of the time in which calls gather."""

    def __init__(self, seconds: float = GATHER_SECONDS / 2) -> None:
        self.records = {n: f"record {n}" for n in range(100)}
        self.asked: list[tuple[int, ...]] = []
        self.failure: Exception | None = None
        self._seconds = seconds

    async def read(self, keys: Sequence[int]) -> Mapping[int, str]:
        self.asked.append(tuple(sorted(keys)))
        found = {key: self.records[key] for key in keys if key in self.records}
        await trio.sleep(self._seconds)
        if self.failure is not None:
            raise self.failure
        return found


async def all_of(reads: Together[int, str], keys: Sequence[int]) -> list[str | None]:
    found: dict[int, str | None] = {}

    async def one(place: int, key: int) -> None:
        found[place] = await reads.ask(key)

    async with trio.open_nursery() as nursery:
        for place, key in enumerate(keys):
            nursery.start_soon(one, place, key)
    return [found[place] for place in range(len(keys))]


async def within(scope: trio.CancelScope, reads: Together[int, str], key: int) -> None:
    with scope:
        await reads.ask(key)


async def test_those_who_ask_at_once_share_a_read(autojump_clock: trio.testing.MockClock) -> None:
    store = Store()
    found = await all_of(Together(store.read), [3, 1, 3, 500])
    assert found == ["record 3", "record 1", "record 3", None]
    assert store.asked == [(1, 3, 500)]


async def test_a_read_begins_after_it_was_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    store = Store()
    reads = Together(store.read)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reads.ask, 1)
        await trio.sleep(GATHER_SECONDS / 4)
        store.records[1] = "written meanwhile"
        assert await reads.ask(1) == "written meanwhile"
    assert store.asked == [(1,), (1,)]


async def test_while_reads_are_under_way_the_next_ones_gather(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Store()
    reads = Together(store.read)
    async with trio.open_nursery() as nursery:
        for key in range(CALLS_AT_ONCE + 5):
            nursery.start_soon(reads.ask, key)
            await trio.sleep(0.0001)
    under_way = [(key,) for key in range(CALLS_AT_ONCE)]
    assert store.asked == [*under_way, tuple(range(CALLS_AT_ONCE, CALLS_AT_ONCE + 5))]


async def test_a_read_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    store = Store()
    found = await all_of(Together(store.read), range(KEYS_A_CALL + 3))
    assert found == [f"record {n}" for n in range(KEYS_A_CALL + 3)]
    assert sorted(map(len, store.asked)) == [3, KEYS_A_CALL]


async def test_a_store_that_hangs_holds_each_as_long_as_its_own_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Store(seconds=5)
    store.failure = PortUnavailable("hangs")
    reads = Together(store.read)
    waited: list[float] = []

    async def ask(key: int) -> None:
        began = trio.current_time()
        with pytest.raises(PortUnavailable, match="hangs"):
            await reads.ask(key)
        waited.append(round(trio.current_time() - began, 3))

    async with trio.open_nursery() as nursery:
        for key in range(100):
            nursery.start_soon(ask, key)
            await trio.sleep(0.1)
    assert (len(waited), max(waited)) == (100, 5 + GATHER_SECONDS)


async def test_who_leads_and_is_cancelled_takes_nobody_along(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Store()
    reads = Together(store.read)
    found: list[str | None] = []

    async def follow() -> None:
        found.append(await reads.ask(2))

    async with trio.open_nursery() as nursery:
        for key in range(50, 50 + CALLS_AT_ONCE):
            nursery.start_soon(reads.ask, key)
            await trio.sleep(0.0001)
        leader = trio.CancelScope()
        nursery.start_soon(within, leader, reads, 1)
        await trio.sleep(0.0001)
        nursery.start_soon(follow)
        nursery.start_soon(reads.ask, 3)
        await trio.sleep(GATHER_SECONDS / 2 + 0.001)
        leader.cancel()
    assert found == ["record 2"]
    assert store.asked[CALLS_AT_ONCE:] == [(1, 2, 3), (2, 3)]


async def test_a_follower_that_is_cancelled_takes_nobody_along(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Store()
    reads = Together(store.read)
    async with trio.open_nursery() as nursery:
        for key in (*range(50, 50 + CALLS_AT_ONCE), 1):
            nursery.start_soon(reads.ask, key)
            await trio.sleep(0.0001)
        with trio.move_on_after(0.001) as scope:
            await reads.ask(2)
    assert scope.cancelled_caught
    assert store.asked[CALLS_AT_ONCE:] == [(1, 2)]


async def test_a_failure_reaches_all_who_asked_together_as_what_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Store()
    store.failure = OperationRefused("no rights")
    reads = Together(store.read)
    failures: list[PortUnavailable] = []

    async def ask(key: int) -> None:
        try:
            await reads.ask(key)
        except PortUnavailable as failure:
            failures.append(failure)

    async with trio.open_nursery() as nursery:
        for key in range(3):
            nursery.start_soon(ask, key)
    assert [(type(each), str(each)) for each in failures] == [(OperationRefused, "no rights")] * 3
    assert len(set(map(id, failures))) == 3
    store.failure = None
    assert await reads.ask(1) == "record 1"


async def test_what_is_no_failure_of_the_store_stays_with_who_reads(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An error of the program: each who asked meets it by itself, and nobody waits for ever."""
    store = Store()
    store.failure = ZeroDivisionError()
    reads = Together(store.read)
    failed = 0

    async def ask(key: int) -> None:
        nonlocal failed
        try:
            await reads.ask(key)
        except ZeroDivisionError:
            failed += 1

    async with trio.open_nursery() as nursery:
        for key in range(3):
            nursery.start_soon(ask, key)
    assert failed == 3
