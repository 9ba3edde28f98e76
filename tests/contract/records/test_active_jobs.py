"""What an operator watches: how many jobs are where, and how long the oldest have waited."""

from datetime import timedelta

from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    ago,
    claimed,
    completed,
    ended,
    inserted,
    now,
)


async def test_a_store_without_jobs(store: RecordStore) -> None:
    active = await store.dispatch.active_jobs()
    counts = (active.undispatched, active.dispatched, active.parked, active.processing)
    assert counts == (0, 0, 0, 0)
    assert (active.oldest_undispatched_seconds, active.oldest_dispatched_seconds) == (0, 0)


async def test_each_active_job_counts_once(store: RecordStore) -> None:
    for _ in range(4):
        await inserted(store)
    for _ in range(3):
        sent = await inserted(store)
        assert await store.dispatch.mark_dispatched({sent.id: 0})
    for _ in range(2):
        parked = await claimed(store, await inserted(store))
        until = now() + timedelta(hours=1)
        assert await store.leases.park(parked.lease, until=until, reason="sales_db is down")
    await claimed(store, await inserted(store))
    await claimed(store, await inserted(store), lease_seconds=ALREADY_OVER)
    await ended(store, completed())
    active = await store.dispatch.active_jobs()
    assert (active.undispatched, active.dispatched) == (4, 3)
    assert (active.parked, active.processing) == (2, 2)


async def test_ages_are_those_of_the_oldest(store: RecordStore) -> None:
    await inserted(store, created_at=ago(300))
    await inserted(store, created_at=ago(100))
    sent = await inserted(store, created_at=ago(5000))
    assert await store.dispatch.mark_dispatched({sent.id: 0})
    active = await store.dispatch.active_jobs()
    assert 299 < active.oldest_undispatched_seconds < 330
    assert 0 <= active.oldest_dispatched_seconds < 30


async def test_a_job_that_was_put_back_waits_since_then(store: RecordStore) -> None:
    released = await claimed(store, await inserted(store, created_at=ago(5000)))
    assert await store.leases.release(released.lease)
    active = await store.dispatch.active_jobs()
    assert active.undispatched == 1
    assert 0 <= active.oldest_undispatched_seconds < 30


async def test_a_parked_job_is_not_late(store: RecordStore) -> None:
    parked = await claimed(store, await inserted(store, created_at=ago(5000)))
    until = now() + timedelta(hours=1)
    assert await store.leases.park(parked.lease, until=until, reason="sales_db is down")
    active = await store.dispatch.active_jobs()
    assert (active.parked, active.oldest_undispatched_seconds) == (1, 0)
