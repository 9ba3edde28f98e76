"""JobRecords: the key by which a caller may send a request again (decisions)."""

from dataclasses import replace

import pytest
import trio

from fetcher.domain.errors import DuplicateActiveJob, DuplicateIdempotencyKey
from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import MOST_IDEMPOTENCY_KEYS
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_job, ago, completed, ended, failed, inserted, read

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


@pytest.mark.parametrize("has_ended", [False, True])
async def test_job_holds_each_key_that_it_is_given(store: RecordStore, has_ended: bool) -> None:
    first = "first"
    made = (
        ended(store, completed(), idempotency_key=first)
        if has_ended
        else inserted(store, idempotency_key=first)
    )
    job = await made
    for key in ("second", "third", "second", first):
        assert await store.jobs.give_idempotency_key(job.id, key) is True
    assert await read(store, job) == job
    for key in (first, "second", "third"):
        assert await store.jobs.find_by_idempotency_key(key) == job
        with pytest.raises(DuplicateIdempotencyKey):
            await store.jobs.insert(a_job(idempotency_key=key))
        other = await inserted(store)
        with pytest.raises(DuplicateIdempotencyKey):
            await store.jobs.give_idempotency_key(other.id, key)
    assert await store.jobs.find_by_idempotency_key("fourth") is None


async def test_unknown_job_is_given_no_key(store: RecordStore) -> None:
    assert await store.jobs.give_idempotency_key(new_job_id(), KEY) is False
    assert await store.jobs.find_by_idempotency_key(KEY) is None


async def test_each_of_several_keys_is_forgotten_alone(store: RecordStore) -> None:
    jobs = [await inserted(store, idempotency_key=f"{n}a") for n in range(2)]
    for n, job in enumerate(jobs):
        for name in ("b", "c"):
            assert await store.jobs.give_idempotency_key(job.id, f"{n}{name}")
    for gone, left in (("a", "bc"), ("c", "b"), ("b", "")):
        for n, job in enumerate(jobs):
            await store.jobs.forget_idempotency_key(job.id, f"{n}{gone}")
            assert await store.jobs.find_by_idempotency_key(f"{n}{gone}") is None
            for name in left:
                found = await store.jobs.find_by_idempotency_key(f"{n}{name}")
                assert found is not None
                assert found.id == job.id
    assert [(await read(store, job)).idempotency_key for job in jobs] == [None, None]
    again = await inserted(store, idempotency_key="0a")
    assert await store.jobs.give_idempotency_key(again.id, "0b")
    assert await store.jobs.give_idempotency_key(jobs[0].id, "0c")


async def test_keys_of_a_job_are_bounded(store: RecordStore) -> None:
    job = await inserted(store, idempotency_key="0")
    given = [await store.jobs.give_idempotency_key(job.id, str(n)) for n in range(25)]
    assert given == [True] * MOST_IDEMPOTENCY_KEYS + [False] * (25 - MOST_IDEMPOTENCY_KEYS)
    assert await store.jobs.find_by_idempotency_key("24") is None
    await store.jobs.forget_idempotency_key(job.id, "7")
    assert await store.jobs.give_idempotency_key(job.id, "24") is True


async def test_keys_that_are_given_to_one_job_at_once_are_all_held(store: RecordStore) -> None:
    job = await inserted(store, idempotency_key="first")
    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c", "d"):
            nursery.start_soon(store.jobs.give_idempotency_key, job.id, name)
    for name in ("first", "a", "b", "c", "d"):
        assert await store.jobs.find_by_idempotency_key(name) == job


async def test_keys_of_a_job_that_went_are_free(store: RecordStore) -> None:
    job = await ended(store, failed(), idempotency_key=KEY)
    await store.jobs.give_idempotency_key(job.id, "second")
    await store.events.mark_published(job.id)
    assert await store.retention.delete_jobs(older_than_seconds=-60, limit=9) == 1
    for key in (KEY, "second"):
        assert await store.jobs.find_by_idempotency_key(key) is None
        await inserted(store, idempotency_key=key)


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


@pytest.mark.parametrize("first", ["first", None])
async def test_of_many_keys_given_at_once_as_many_are_held_as_may_be(
    store: RecordStore, first: str | None
) -> None:
    """Many clients repeat one request, each with a key of its own: none of them fails."""
    job = await inserted(store, idempotency_key=first)
    held: dict[str, bool] = {}

    async def give(name: str) -> None:
        held[name] = await store.jobs.give_idempotency_key(job.id, name)

    names = [f"k{number}" for number in range(30)]
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(give, name)
    assert sum(held.values()) == MOST_IDEMPOTENCY_KEYS - (first is not None)
    for name in names:
        found = await store.jobs.find_by_idempotency_key(name)
        assert (found is not None) is held[name]
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(store.jobs.forget_idempotency_key, job.id, name)
    assert (await read(store, job)).idempotency_key == first
    for name in names:
        assert await store.jobs.find_by_idempotency_key(name) is None
