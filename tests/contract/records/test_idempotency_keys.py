"""JobRecords: the key by which a caller may send a request again (decisions)."""

from dataclasses import replace

import pytest
import trio

from fetcher.domain.errors import DuplicateActiveJob, DuplicateIdempotencyKey
from fetcher.domain.ids import new_job_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_job, ago, completed, ended, inserted, read

KEY = "/v1/fetcher k-1 reporting"


async def test_job_is_found_by_its_key_alone(store: RecordStore) -> None:
    await inserted(store)
    assert await store.jobs.find_by_idempotency_key(KEY) is None
    job = await inserted(store, idempotency_key=KEY)
    assert await store.jobs.find_by_idempotency_key(KEY) == job
    for other in (KEY.upper(), f"{KEY} ", "", KEY[:-1]):
        assert await store.jobs.find_by_idempotency_key(other) is None


async def test_key_is_taken_whatever_became_of_its_job(store: RecordStore) -> None:
    pending = await inserted(store, idempotency_key=KEY, created_at=ago(90_000))
    for attempt in (a_job(idempotency_key=KEY), pending):
        with pytest.raises(DuplicateIdempotencyKey):
            await store.jobs.insert(attempt)
    done = await ended(store, completed(), idempotency_key="other")
    refused = a_job(idempotency_key="other")
    with pytest.raises(DuplicateIdempotencyKey):
        await store.jobs.insert(refused)
    assert await store.jobs.find_by_idempotency_key("other") == done
    assert await store.jobs.get(refused.id) is None


async def test_key_is_looked_at_before_the_hash(store: RecordStore) -> None:
    job = await inserted(store, idempotency_key=KEY)
    with pytest.raises(DuplicateIdempotencyKey):
        await store.jobs.insert(a_job(idempotency_key=KEY, request_hash=job.request_hash))
    with pytest.raises(DuplicateActiveJob):
        await store.jobs.insert(a_job(idempotency_key="new", request_hash=job.request_hash))
    assert await store.jobs.find_by_idempotency_key("new") is None


async def test_jobs_without_a_key_are_no_duplicates(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(3)]
    assert [await store.jobs.get(job.id) for job in jobs] == jobs


async def test_of_twenty_inserts_with_one_key_one_wins(store: RecordStore) -> None:
    jobs = [a_job(idempotency_key=KEY) for _ in range(20)]
    outcomes: list[bool] = []

    async def insert(number: int) -> None:
        try:
            await store.jobs.insert(jobs[number])
            outcomes.append(True)
        except DuplicateIdempotencyKey:
            outcomes.append(False)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(insert, number)
    assert sorted(outcomes) == [False] * 19 + [True]
    [stored] = [job for job in jobs if await store.jobs.get(job.id)]
    assert await store.jobs.find_by_idempotency_key(KEY) == stored


async def test_forgotten_key_is_free_and_its_job_stays(store: RecordStore) -> None:
    job = await ended(store, completed(), idempotency_key=KEY)
    await store.jobs.forget_idempotency_key(job.id, KEY)
    assert await store.jobs.find_by_idempotency_key(KEY) is None
    kept = await read(store, job)
    assert (kept.idempotency_key, kept.status) == (None, job.status)
    again = await inserted(store, idempotency_key=KEY)
    assert await store.jobs.find_by_idempotency_key(KEY) == again


async def test_only_the_holder_loses_the_key(store: RecordStore) -> None:
    """Two callers met the same expired key: the second must not take it from the first's job."""
    job = await inserted(store, idempotency_key=KEY)
    other = await inserted(store, idempotency_key="other")
    await store.jobs.forget_idempotency_key(other.id, KEY)
    await store.jobs.forget_idempotency_key(job.id, "other")
    await store.jobs.forget_idempotency_key(new_job_id(), KEY)
    assert await store.jobs.find_by_idempotency_key(KEY) == job
    assert await store.jobs.find_by_idempotency_key("other") == other


@pytest.mark.parametrize("has_ended", [False, True])
async def test_job_without_a_key_is_given_one_and_changes_in_nothing_else(
    store: RecordStore, has_ended: bool
) -> None:
    job = await (ended(store, completed()) if has_ended else inserted(store))
    for _ in range(2):
        assert await store.jobs.give_idempotency_key(job.id, KEY) is True
        assert await store.jobs.find_by_idempotency_key(KEY) == replace(job, idempotency_key=KEY)
    with pytest.raises(DuplicateIdempotencyKey):
        await store.jobs.insert(a_job(idempotency_key=KEY))


async def test_job_keeps_the_key_that_it_holds(store: RecordStore) -> None:
    job = await inserted(store, idempotency_key="other")
    assert await store.jobs.give_idempotency_key(job.id, KEY) is False
    assert await store.jobs.give_idempotency_key(new_job_id(), KEY) is False
    assert await store.jobs.find_by_idempotency_key(KEY) is None
    assert await store.jobs.find_by_idempotency_key("other") == job


async def test_key_of_another_job_is_not_given(store: RecordStore) -> None:
    holder = await inserted(store, idempotency_key=KEY)
    job = await inserted(store)
    with pytest.raises(DuplicateIdempotencyKey):
        await store.jobs.give_idempotency_key(job.id, KEY)
    assert await store.jobs.find_by_idempotency_key(KEY) == holder
    assert (await read(store, job)).idempotency_key is None


async def test_of_twenty_jobs_that_are_given_one_key_one_gets_it(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(20)]
    outcomes: list[bool] = []

    async def give(number: int) -> None:
        try:
            outcomes.append(await store.jobs.give_idempotency_key(jobs[number].id, KEY))
        except DuplicateIdempotencyKey:
            outcomes.append(False)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(give, number)
    assert sorted(outcomes) == [False] * 19 + [True]
    kept = [await read(store, job) for job in jobs]
    assert [job.idempotency_key for job in kept].count(KEY) == 1
