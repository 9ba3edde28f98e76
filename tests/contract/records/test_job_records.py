"""JobRecords: created, read, listed, asked to stop (spec rest-api 9.5, 9.6, 12.3)."""

from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
import trio

from fetcher.domain.errors import DuplicateActiveJob
from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.job_store import CancelAnswer, EndedCursor, FinishAnswer
from fetcher.domain.jobs import Job, JobOptions, JobStatus, TerminalOutcome
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    LEASE_SECONDS,
    a_job,
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

OUTCOMES = [completed(), failed(), cancelled()]


async def test_inserted_job_reads_back_as_it_was(store: RecordStore) -> None:
    job = a_job(
        due_at=now() + timedelta(seconds=5),
        waiting_reason="breaker open",
        idempotency_key="key-1",
        options=JobOptions(
            values="natural", bigint="string", decimals="number", limits={"maxRows": 5, "x": 0.25}
        ),
    )
    await store.jobs.insert(job)
    assert await store.jobs.get(job.id) == job


async def test_unknown_job_is_none(store: RecordStore) -> None:
    assert await store.jobs.get(new_job_id()) is None


@pytest.mark.parametrize(
    "number",
    [
        0,
        -(2**63),
        2**63 - 1,
        2**63,
        2**64,
        10**400,
        Decimal("1.10"),
        Decimal("0.1"),
        Decimal("-0"),
        Decimal("-0.0"),
        Decimal("1E+400"),
        Decimal("1E-400"),
        Decimal("12345678901234567890123456789012345678901234567890.5"),
        Decimal("9007199254740993.0"),
    ],
    ids=lambda number: str(number)[:24],
)
async def test_numbers_keep_every_digit(store: RecordStore, number: int | Decimal) -> None:
    job = await inserted(
        store,
        metadata={"source": "p", "n": number, "deep": {"list": [number, [number]]}},
        filters={"db": {"t": {"f": {"in": (number, "1"), "gt": (number,)}}}},
    )
    record = await read(store, job)
    found = [
        record.metadata["n"],
        record.metadata["deep"]["list"][1][0],  # type: ignore[index, call-overload]  # known shape
        record.filters["db"]["t"]["f"]["in"][0],
    ]
    assert found == [number] * 3
    assert [type(value) for value in found] == [type(number)] * 3
    assert [str(value) for value in found] == [str(number)] * 3


async def test_true_false_null_and_numbers_stay_what_they_are(store: RecordStore) -> None:
    values = (True, False, None, 0, 1, "true", "")
    job = await inserted(store, filters={"db": {"t": {"f": {"in": values}}}})
    found = (await read(store, job)).filters["db"]["t"]["f"]["in"]
    assert [(type(v), v) for v in found] == [(type(v), v) for v in values]


@pytest.mark.parametrize(
    "name",
    [
        "public.orders",
        "a.b.c",
        ".",
        "$where",
        "$",
        "a$b",
        "__type",
        "Größe",
        "表",
        "🦉",
        'q"\\q',
        " ",
    ],
)
async def test_names_of_any_form_are_kept(store: RecordStore, name: str) -> None:
    job = await inserted(
        store,
        mapped_fields={"db": {name: (name, "id")}},
        filters={"db": {name: {name: {"eq": (name,)}}}},
        metadata={"source": "p", name: {name: [name]}},
    )
    assert await read(store, job) == job


async def test_nested_order_and_empty_values_are_kept(store: RecordStore) -> None:
    job = await inserted(
        store,
        mapped_fields={"z": {"b": ("y", "x"), "a": ("b", "a")}, "a": {"t": ("id",)}},
        metadata={"source": "p", "empty": {}, "none": None, "list": [], "text": ""},
    )
    record = await read(store, job)
    assert record == job
    assert list(record.mapped_fields) == ["z", "a"]
    assert list(record.mapped_fields["z"]) == ["b", "a"]


async def test_what_a_reader_changes_is_not_stored(store: RecordStore) -> None:
    metadata = {"source": "p", "tags": ["a"]}
    job = await inserted(store, metadata=metadata)
    metadata["tags"] = ["changed"]
    (await read(store, job)).metadata["tags"].append("b")  # type: ignore[union-attr]  # a list
    assert (await read(store, job)).metadata == {"source": "p", "tags": ["a"]}


# --- duplicates -----------------------------------------------------------------------------


async def test_second_active_job_with_the_hash_is_refused(store: RecordStore) -> None:
    first = await inserted(store)
    with pytest.raises(DuplicateActiveJob):
        await store.jobs.insert(a_job(request_hash=first.request_hash))
    await claimed(store, first)
    with pytest.raises(DuplicateActiveJob):
        await store.jobs.insert(a_job(request_hash=first.request_hash))


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda o: o.status)
async def test_ended_job_blocks_no_other(store: RecordStore, outcome: TerminalOutcome) -> None:
    first = await ended(store, outcome)
    second = await inserted(store, request_hash=first.request_hash)
    assert await store.jobs.find_active_by_hash(first.request_hash) == second


async def test_of_twenty_identical_inserts_one_wins(store: RecordStore) -> None:
    jobs = [a_job(request_hash="same") for _ in range(20)]
    stored: list[Job] = []
    refused: list[Job] = []

    async def insert(job: Job) -> None:
        try:
            await store.jobs.insert(job)
            stored.append(job)
        except DuplicateActiveJob:
            refused.append(job)

    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(insert, job)
    assert (len(stored), len(refused)) == (1, 19)
    assert await store.jobs.find_active_by_hash("same") == stored[0]
    assert [job.id for job in jobs if await store.jobs.get(job.id)] == [stored[0].id]


async def test_repeated_insert_of_the_same_job_finds_itself(store: RecordStore) -> None:
    """An insert whose answer was lost and that is sent again."""
    job = await inserted(store)
    with pytest.raises(DuplicateActiveJob):
        await store.jobs.insert(job)
    assert await store.jobs.find_active_by_hash(job.request_hash) == job


async def test_latest_by_hash_is_the_most_recent_of_any_state(store: RecordStore) -> None:
    older = await ended(store, completed(), request_hash="h", created_at=ago(200))
    assert await store.jobs.find_latest_by_hash("h", within_seconds=300) == older
    newer = await ended(store, failed(), request_hash="h", created_at=ago(100))
    await inserted(store, request_hash="other")
    assert await store.jobs.find_latest_by_hash("h", within_seconds=300) == newer


async def test_job_created_before_the_window_is_not_found(store: RecordStore) -> None:
    await inserted(store, request_hash="h", created_at=ago(310))
    assert await store.jobs.find_latest_by_hash("h", within_seconds=300) is None
    assert await store.jobs.find_latest_by_hash("h", within_seconds=320) is not None


async def test_active_job_is_found_without_a_time_limit(store: RecordStore) -> None:
    job = await inserted(store, request_hash="h", created_at=ago(90_000))
    assert await store.jobs.find_active_by_hash("h") == job
    assert await store.jobs.find_active_by_hash("other") is None
    claim = await claimed(store, job)
    assert await store.jobs.find_active_by_hash("h") == claim.job
    await store.leases.finish(claim.lease, completed())
    assert await store.jobs.find_active_by_hash("h") is None


# --- ended jobs -----------------------------------------------------------------------------


def cursor_of(job: Job) -> EndedCursor:
    assert job.completed_at is not None
    return EndedCursor(completed_at=job.completed_at, job_id=job.id)


async def test_ended_jobs_come_in_the_order_in_which_they_ended(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(6)]
    order = [jobs[i] for i in (3, 0, 5, 1, 4, 2)]
    for job in order:
        claim = await claimed(store, job)
        await store.leases.finish(claim.lease, completed())
    await inserted(store)
    await claimed(store, await inserted(store))
    found = await store.jobs.list_ended(after=None, limit=10)
    assert {job.id for job in found} == {job.id for job in order}
    places = [(job.completed_at, job.id) for job in found]
    assert places == sorted(places)
    assert [await read(store, job) for job in found] == found


async def test_pages_of_ended_jobs_neither_repeat_nor_lose_one(store: RecordStore) -> None:
    jobs = [await ended(store, outcome) for outcome in OUTCOMES for _ in range(3)]
    seen: list[JobId] = []
    after: EndedCursor | None = None
    while page := await store.jobs.list_ended(after=after, limit=2):
        assert len(page) <= 2
        seen += [job.id for job in page]
        after = cursor_of(page[-1])
    assert len(seen) == len(jobs)
    assert set(seen) == {job.id for job in jobs}


async def test_cursor_is_exclusive_and_orders_by_id_within_a_time(store: RecordStore) -> None:
    job = await ended(store, completed())
    place = cursor_of(job)
    below = EndedCursor(completed_at=place.completed_at, job_id=JobId(UUID(int=0)))
    above = EndedCursor(completed_at=place.completed_at, job_id=JobId(UUID(int=2**128 - 1)))
    earlier = EndedCursor(
        completed_at=place.completed_at - timedelta(milliseconds=1), job_id=above.job_id
    )
    assert await store.jobs.list_ended(after=place, limit=5) == []
    assert await store.jobs.list_ended(after=above, limit=5) == []
    assert await store.jobs.list_ended(after=below, limit=5) == [job]
    assert await store.jobs.list_ended(after=earlier, limit=5) == [job]


async def test_ended_jobs_of_one_product_whatever_its_case(store: RecordStore) -> None:
    ours = await ended(store, completed(), metadata={"source": " Reporting "})
    also = await ended(store, failed(), metadata={"source": "REPORTING"})
    await ended(store, completed(), metadata={"source": "billing"})
    await ended(store, completed(), metadata={})
    found = await store.jobs.list_ended(after=None, limit=9, product_name="reporTing")
    assert {job.id for job in found} == {ours.id, also.id}
    after = cursor_of(found[0])
    rest = await store.jobs.list_ended(after=after, limit=9, product_name="reporting")
    assert rest == found[1:]


async def test_latest_ended_is_the_last_place_of_the_order(store: RecordStore) -> None:
    assert await store.jobs.latest_ended() is None
    await inserted(store)
    assert await store.jobs.latest_ended() is None
    for _ in range(3):
        await ended(store, completed())
        everything = await store.jobs.list_ended(after=None, limit=9)
        assert await store.jobs.latest_ended() == cursor_of(everything[-1])


# --- cancel ---------------------------------------------------------------------------------


async def test_pending_job_is_cancelled_at_once_with_its_event(store: RecordStore) -> None:
    job = await inserted(store)
    mark = a_mark("failed", '{"message":"job cancelled"}')
    assert await store.jobs.request_cancel(job.id, mark) is CancelAnswer.CANCELLED
    record = await read(store, job)
    assert record.status is JobStatus.CANCELLED
    assert record.completed_at is not None
    assert record.failure == cancelled().failure
    assert record.event_pending
    (event,) = await store.events.claim_due(limit=5, lease_seconds=LEASE_SECONDS)
    assert (event.job_id, event.mark) == (job.id, mark)
    assert await store.dispatch.claim_due(limit=5, lease_seconds=LEASE_SECONDS) == []
    assert await store.jobs.list_ended(after=None, limit=5) == [record]


async def test_dispatched_job_that_is_pending_is_cancelled_at_once(store: RecordStore) -> None:
    job = await inserted(store)
    await store.dispatch.mark_dispatched({job.id: job.dispatch_seq})
    answer = await store.jobs.request_cancel(job.id, a_mark("failed"))
    assert answer is CancelAnswer.CANCELLED
    backlog = await store.dispatch.backlog(older_than_seconds=0)
    assert (backlog.dispatched, backlog.stale) == (0, 0)


async def test_processing_job_is_asked_once_and_told_its_owner(store: RecordStore) -> None:
    job = await inserted(store)
    await claimed(store, job)
    assert await store.jobs.request_cancel(job.id, a_mark("failed")) is CancelAnswer.REQUESTED
    first = await read(store, job)
    assert first.status is JobStatus.PROCESSING
    assert first.cancel_requested is not None
    assert not first.event_pending
    assert await store.jobs.request_cancel(job.id, a_mark("failed")) is CancelAnswer.REQUESTED
    assert await read(store, job) == first


async def test_cancelling_again_is_no_error_and_changes_nothing(store: RecordStore) -> None:
    job = await inserted(store)
    await store.jobs.request_cancel(job.id, a_mark("failed"))
    first = await read(store, job)
    assert await store.jobs.request_cancel(job.id, a_mark("failed")) is CancelAnswer.CANCELLED
    assert await read(store, job) == first


@pytest.mark.parametrize("outcome", [completed(), failed()], ids=lambda o: o.status)
async def test_ended_job_cannot_be_cancelled(store: RecordStore, outcome: TerminalOutcome) -> None:
    job = await ended(store, outcome)
    assert await store.jobs.request_cancel(job.id, a_mark("failed")) is CancelAnswer.ENDED
    assert await read(store, job) == job


async def test_unknown_job_cannot_be_cancelled(store: RecordStore) -> None:
    answer = await store.jobs.request_cancel(new_job_id(), a_mark("failed"))
    assert answer is CancelAnswer.UNKNOWN


async def test_cancel_and_finish_at_once_agree_on_one_end(store: RecordStore) -> None:
    for _ in range(10):
        job = await inserted(store)
        claim = await claimed(store, job)
        answers: dict[str, object] = {}

        async def cancel(job: Job = job, answers: dict[str, object] = answers) -> None:
            answers["cancel"] = await store.jobs.request_cancel(job.id, a_mark("failed"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel)
            answers["finish"] = await store.leases.finish(claim.lease, completed())
        record = await read(store, job)
        if record.status is JobStatus.COMPLETED:
            assert answers == {"cancel": CancelAnswer.ENDED, "finish": FinishAnswer.WRITTEN}
        else:
            assert record.status is JobStatus.PROCESSING
            assert answers == {
                "cancel": CancelAnswer.REQUESTED,
                "finish": FinishAnswer.CANCEL_REQUESTED,
            }
