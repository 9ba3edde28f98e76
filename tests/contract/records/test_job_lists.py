"""JobRecords: pages of jobs, who reads from a connection, how many wait."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from fetcher.domain.ids import JobId
from fetcher.domain.job_store import JobCursor, JobQuery, PendingCounts
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    LEASE_SECONDS,
    a_mark,
    ago,
    cancelled,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
    read,
)

BEGIN = ago(1000)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def an_id(number: int) -> JobId:
    return JobId(UUID(int=number))


async def listed(store: RecordStore, **query: Any) -> list[JobId]:
    page = await store.jobs.list_page(JobQuery(limit=100, **query))
    assert page.next is None
    return [job.id for job in page.items]


async def pages(store: RecordStore, limit: int, **query: Any) -> list[list[JobId]]:
    """All pages, each asked for by the cursor of the one before."""
    seen = []
    after = None
    while True:
        page = await store.jobs.list_page(JobQuery(limit=limit, after=after, **query))
        seen.append([job.id for job in page.items])
        if page.next is None:
            return seen
        assert len(page.items) == limit
        assert (page.next.created_at, page.next.job_id) == (
            page.items[-1].created_at,
            page.items[-1].id,
        )
        after = page.next
        assert len(seen) < 50


async def test_empty_store_lists_nothing(store: RecordStore) -> None:
    page = await store.jobs.list_page(JobQuery())
    assert (page.items, page.next) == ((), None)


async def test_newest_come_first_unless_ascending_and_whole(store: RecordStore) -> None:
    first = await inserted(store, created_at=at(0))
    third = await ended(store, failed(), created_at=at(2))
    second = await ended(store, completed(), created_at=at(1))
    page = await store.jobs.list_page(JobQuery())
    assert page.items == (third, second, first)
    assert (await store.jobs.list_page(JobQuery(ascending=True))).items == (first, second, third)


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_neither_repeat_nor_lose_one_when_times_are_equal(
    store: RecordStore, limit: int, ascending: bool
) -> None:
    order = [an_id(n) for n in (5, 2, 9, 7, 1)]
    for job_id in order:
        await inserted(store, id=job_id, created_at=at(5))
    await inserted(store, id=an_id(8), created_at=at(4))
    await inserted(store, id=an_id(3), created_at=at(6))
    expected = [an_id(n) for n in (8, 1, 2, 5, 7, 9, 3)]
    if not ascending:
        expected.reverse()
    seen = await pages(store, limit, ascending=ascending)
    assert [job_id for page in seen for job_id in page] == expected
    assert len(seen) == -(-7 // limit)


async def test_cursor_holds_while_jobs_come_and_end(store: RecordStore) -> None:
    jobs = [await inserted(store, created_at=at(n)) for n in range(4)]
    page = await store.jobs.list_page(JobQuery(limit=2))
    assert [job.id for job in page.items] == [jobs[3].id, jobs[2].id]
    newer = await inserted(store, created_at=at(9))
    claim = await claimed(store, jobs[1])
    await store.leases.finish(claim.lease, completed())
    rest = await store.jobs.list_page(JobQuery(limit=2, after=page.next))
    assert [job.id for job in rest.items] == [jobs[1].id, jobs[0].id]
    assert rest.next is None
    assert (await store.jobs.list_page(JobQuery(limit=1))).items == (newer,)


async def test_cursor_at_no_job_is_a_place_all_the_same(store: RecordStore) -> None:
    await inserted(store, id=an_id(2), created_at=at(1))
    await inserted(store, id=an_id(4), created_at=at(1))
    between = JobCursor(created_at=at(1), job_id=an_id(3))
    assert await listed(store, after=between) == [an_id(2)]
    assert await listed(store, after=between, ascending=True) == [an_id(4)]


async def test_states_are_any_of_those_asked_for(store: RecordStore) -> None:
    outcomes: dict[JobStatus, TerminalOutcome] = {
        JobStatus.COMPLETED: completed(),
        JobStatus.FAILED: failed(),
        JobStatus.CANCELLED: cancelled(),
    }
    jobs = {status: await ended(store, outcome) for status, outcome in outcomes.items()}
    jobs[JobStatus.PENDING] = await inserted(store)
    jobs[JobStatus.PROCESSING] = (await claimed(store, await inserted(store))).job
    for status, job in jobs.items():
        assert await listed(store, statuses=frozenset({status})) == [job.id]
    both = frozenset({JobStatus.PENDING, JobStatus.FAILED})
    found = await listed(store, statuses=both)
    assert set(found) == {jobs[JobStatus.PENDING].id, jobs[JobStatus.FAILED].id}
    assert len(await listed(store, statuses=frozenset(JobStatus))) == 5
    assert len(await listed(store)) == 5


async def test_product_is_compared_without_case(store: RecordStore) -> None:
    ours = await inserted(store, metadata={"source": " Reporting "})
    await inserted(store, metadata={"source": "billing"})
    await inserted(store, metadata={"source": "reporting2"})
    await inserted(store, metadata={})
    assert await listed(store, product_name="rePORTing") == [ours.id]
    assert await listed(store, product_name=" reporting ") == [ours.id]
    assert await listed(store, product_name="report") == []
    assert await listed(store, product_name=".*") == []


async def test_window_includes_its_start_and_leaves_out_its_end(store: RecordStore) -> None:
    jobs = [await inserted(store, created_at=at(n / 1000)) for n in range(3)]
    ids = [job.id for job in jobs]
    assert await listed(store, created_from=at(0.001), ascending=True) == ids[1:]
    assert await listed(store, created_until=at(0.001)) == ids[:1]
    assert await listed(store, created_from=at(0.001), created_until=at(0.002)) == ids[1:2]


ODD_NAMES = ["a.b", "$x", "sales", "sales_db.public", ".", "表 x", "'\"\\", "%"]


async def test_jobs_of_one_connection(store: RecordStore) -> None:
    one = await inserted(store, mapped_fields={"sales_db": {"t": ("a",)}})
    two = await inserted(
        store, mapped_fields={"crm_db": {"sales_db": ("a",)}, "sales_db": {"t": ("a",)}}
    )
    other = await ended(store, completed(), mapped_fields={"crm_db": {"sales_db": ("crm",)}})
    assert set(await listed(store, config_name="sales_db")) == {one.id, two.id}
    assert set(await listed(store, config_name="crm_db")) == {two.id, other.id}
    for name in ["SALES_DB", "", *ODD_NAMES]:
        assert await listed(store, config_name=name) == []


async def test_filters_narrow_each_other_on_every_page(store: RecordStore) -> None:
    ours = []
    for number in range(20):
        job = await inserted(
            store,
            created_at=at(number // 2),
            mapped_fields={"a_db" if number % 2 else "b_db": {"t": ("x",)}},
            metadata={"source": "p" if number % 3 else "q"},
        )
        if number % 5 == 0:
            await store.jobs.request_cancel(job.id, a_mark("failed"))
        if number % 2 and number % 3 and number % 5 and 2 <= number // 2 < 9:
            ours.append(job.id)
    seen = await pages(
        store,
        2,
        ascending=True,
        statuses=frozenset({JobStatus.PENDING}),
        product_name="P",
        config_name="a_db",
        created_from=at(2),
        created_until=at(9),
    )
    assert [job_id for page in seen for job_id in page] == ours
    assert len(ours) == 4


# --- who reads from a connection --------------------------------------------------------------


async def test_connection_is_in_use_as_long_as_a_job_that_reads_from_it_is_active(
    store: RecordStore,
) -> None:
    assert not await store.jobs.is_in_use("sales_db")
    job = await inserted(store, mapped_fields={"a_db": {"t": ("x",)}, "sales_db": {}})
    assert await store.jobs.is_in_use("sales_db")
    assert await store.jobs.is_in_use("a_db")
    claim = await claimed(store, job)
    assert await store.jobs.is_in_use("sales_db")
    await store.leases.finish(claim.lease, completed())
    assert not await store.jobs.is_in_use("sales_db")


async def test_name_of_a_table_or_field_is_no_use_of_the_connection(store: RecordStore) -> None:
    await inserted(
        store,
        mapped_fields={"a_db": {"sales_db": ("sales_db",), "sales": ("db",)}},
        metadata={"source": "p", "sales_db": {"sales_db": 1}},
        filters={"a_db": {"sales_db": {"sales_db": {"eq": ("sales_db",)}}}},
    )
    for name in ["sales_db", "A_DB", "a", "", *ODD_NAMES]:
        assert not await store.jobs.is_in_use(name), name
    assert await store.jobs.is_in_use("a_db")


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_name_of_any_form_is_found(store: RecordStore, name: str) -> None:
    job = await inserted(store, mapped_fields={name: {"t": ("x",)}})
    assert await store.jobs.is_in_use(name)
    assert await listed(store, config_name=name) == [job.id]


async def test_parked_job_uses_no_connection(store: RecordStore) -> None:
    later = now() + timedelta(hours=1)
    await inserted(store, due_at=later, waiting_reason="breaker open")
    assert not await store.jobs.is_in_use("sales_db")
    await inserted(store, due_at=later)
    assert await store.jobs.is_in_use("sales_db")


async def test_parked_job_that_was_claimed_uses_its_connection(store: RecordStore) -> None:
    job = await inserted(store, due_at=ago(1), waiting_reason="breaker open")
    assert not await store.jobs.is_in_use("sales_db")
    await claimed(store, job)
    assert await store.jobs.is_in_use("sales_db")


# --- how many wait ----------------------------------------------------------------------------


async def test_pending_jobs_are_counted_in_all_and_of_the_product(store: RecordStore) -> None:
    assert await store.jobs.pending_counts(product_name="p") == PendingCounts(total=0, of_product=0)
    waiting: list[Job] = [await inserted(store, metadata={"source": "P "}) for _ in range(3)]
    await inserted(store, metadata={"source": "q"})
    await inserted(store, metadata={})
    await ended(store, completed(), metadata={"source": "p"})
    await claimed(store, waiting[0])
    await store.dispatch.claim_due(limit=1, lease_seconds=LEASE_SECONDS)
    counts = await store.jobs.pending_counts(product_name=" p")
    assert counts == PendingCounts(total=4, of_product=2)
    assert (await store.jobs.pending_counts(product_name="Q")).of_product == 1
    assert (await store.jobs.pending_counts(product_name="none")).of_product == 0


async def test_listed_jobs_are_what_get_gives(store: RecordStore) -> None:
    job = await ended(
        store, completed(), filters={"sales_db": {"public.orders": {"id": {"in": (1, None)}}}}
    )
    page = await store.jobs.list_page(JobQuery(config_name="sales_db"))
    assert page.items == (await read(store, job),)
