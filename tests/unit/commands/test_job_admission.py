"""How many jobs may wait, and what asking for their number costs those who come."""

from typing import cast

import pytest
import trio
import trio.testing

from fetcher.commands.job_admission import (
    FRESH_SECONDS,
    ROOMY_SECONDS,
    JobAdmission,
    TooManyPendingJobs,
)
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import PendingCounts
from fetcher.ports import JobRecords

COUNT_SECONDS = 0.5


class Counted:
    """Takes half a second to count; jobs are there as soon as they are let in."""

    def __init__(self, waiting: int, *, seconds: float = COUNT_SECONDS) -> None:
        self.waiting = waiting
        self._seconds = seconds
        self.asked = 0
        self.is_away = False

    async def pending_counts(self, *, product_name: str) -> PendingCounts:
        self.asked += 1
        await trio.sleep(self._seconds)
        if self.is_away:
            raise PortUnavailable("away")
        return PendingCounts(total=self.waiting, of_product=self.waiting)


def admission(records: Counted, *, limit: int) -> JobAdmission:
    return JobAdmission(
        cast("JobRecords", records), max_pending=limit, max_pending_of_product=limit
    )


async def seconds_to_admit(admits: JobAdmission) -> float:
    began = trio.current_time()
    await admits.admit("orders")
    return trio.current_time() - began


async def test_while_there_is_room_one_request_waits_for_a_new_count_and_the_others_do_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    records = Counted(10)
    admits = admission(records, limit=100)
    assert await seconds_to_admit(admits) == COUNT_SECONDS
    await trio.sleep(ROOMY_SECONDS)
    waited: list[float] = []

    async def admit() -> None:
        waited.append(await seconds_to_admit(admits))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(admit)
        await trio.sleep(0.1)
        for _ in range(5):
            nursery.start_soon(admit)
    assert waited == [0.0] * 5 + [COUNT_SECONDS]
    assert records.asked == 2


@pytest.mark.parametrize("are_stored", [True, False])
async def test_who_was_let_in_while_it_was_counted_is_counted_once(
    autojump_clock: trio.testing.MockClock, *, are_stored: bool
) -> None:
    """Neither is one refused for jobs that count twice, nor let in for some that were missed."""
    records = Counted(10)
    admits = admission(records, limit=100)
    await admits.admit("orders")
    await trio.sleep(ROOMY_SECONDS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admits.admit, "orders")
        await trio.sleep(0.1)
        for _ in range(39):
            await admits.admit("orders")
            records.waiting += are_stored
    records.waiting += 1 + 39 * (not are_stored)
    for _ in range(50):
        await admits.admit("orders")
        records.waiting += 1
    with pytest.raises(TooManyPendingJobs):
        await admits.admit("orders")
    assert records.waiting == 100


@pytest.mark.parametrize(("waiting", "let_in"), [(10, 20), (60, 20), (95, 5)])
async def test_a_count_that_takes_longer_than_it_is_fresh_serves_all_who_waited(
    autojump_clock: trio.testing.MockClock, waiting: int, let_in: int
) -> None:
    seconds = 2 * ROOMY_SECONDS
    records = Counted(waiting, seconds=seconds)
    admits = admission(records, limit=100)
    ends: list[tuple[float, bool]] = []

    async def admit() -> None:
        try:
            await admits.admit("orders")
        except TooManyPendingJobs:
            ends.append((trio.current_time(), False))
        else:
            ends.append((trio.current_time(), True))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(admit)
    assert {at for at, _ in ends} == {seconds}
    assert sum(is_in for _, is_in in ends) == let_in
    assert records.asked == 1


async def test_a_store_that_hangs_holds_nobody_longer_than_a_count_takes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    records = Counted(10)
    records.is_away = True
    admits = admission(records, limit=100)
    waited: list[float] = []

    async def ask() -> None:
        began = trio.current_time()
        with pytest.raises(PortUnavailable, match="away"):
            await admits.admit("orders")
        waited.append(round(trio.current_time() - began, 3))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
            await trio.sleep(0.01)
    assert max(waited) == COUNT_SECONDS
    assert records.asked == 1
    records.is_away = False
    await admits.admit("orders")


@pytest.mark.parametrize("old_count", [60, None])
async def test_near_the_limit_or_without_a_count_all_wait_for_the_new_one(
    autojump_clock: trio.testing.MockClock, old_count: int | None
) -> None:
    records = Counted(old_count or 99)
    admits = admission(records, limit=100)
    if old_count is not None:
        await admits.admit("orders")
        await trio.sleep(FRESH_SECONDS)
        records.waiting = 99
    refused = 0

    async def admit() -> None:
        nonlocal refused
        try:
            await admits.admit("orders")
        except TooManyPendingJobs:
            refused += 1

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(admit)
    assert refused == 4


async def test_a_count_that_nobody_renews_is_not_gone_by_for_long(
    autojump_clock: trio.testing.MockClock,
) -> None:
    records = Counted(10)
    admits = admission(records, limit=100)
    await admits.admit("orders")
    await trio.sleep(2 * ROOMY_SECONDS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admits.admit, "orders")
        await trio.sleep(0.1)
        assert await seconds_to_admit(admits) == pytest.approx(COUNT_SECONDS - 0.1)
