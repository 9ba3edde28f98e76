"""ObjectCleanup: objects of lost attempts that are to be deleted (decisions 034 and 038)."""

from fetcher.domain.ids import new_job_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import completed, ended, inserted, read


async def test_noted_keys_are_due_until_they_are_cleared(store: RecordStore) -> None:
    job = await ended(store, completed())
    await store.cleanup.note(job.id, ["a/1.json", "a/1.2.json"], late_seconds=0)
    assert await store.cleanup.find_due(limit=9) == [(job.id, ("a/1.json", "a/1.2.json"))]
    assert await store.cleanup.find_due(limit=9) == [(job.id, ("a/1.json", "a/1.2.json"))]
    await store.cleanup.clear(job.id, ["a/1.json", "a/1.2.json"])
    assert await store.cleanup.find_due(limit=9) == []


async def test_later_notes_add_to_the_first(store: RecordStore) -> None:
    """Two lost attempts note their own objects."""
    job = await inserted(store)
    await store.cleanup.note(job.id, ["1.json"])
    await store.cleanup.note(job.id, ["1.2.json"])
    await store.cleanup.note(job.id, ["1.2.json"])
    ((job_id, keys),) = await store.cleanup.find_due(limit=9)
    assert (job_id, sorted(keys)) == (job.id, ["1.2.json", "1.json"])


async def test_note_changes_nothing_else_of_the_job(store: RecordStore) -> None:
    job = await ended(store, completed())
    await store.cleanup.note(job.id, ["1.json"], late_seconds=0)
    assert await read(store, job) == job
    await store.cleanup.clear(job.id, ["1.json"])
    assert await read(store, job) == job


async def test_a_key_that_was_noted_since_stays_noted(store: RecordStore) -> None:
    """A second lost attempt notes its object while the first one's is being deleted."""
    job = await inserted(store)
    await store.cleanup.note(job.id, ["1.json"], late_seconds=0)
    ((_, found),) = await store.cleanup.find_due(limit=9)
    await store.cleanup.note(job.id, ["1.2.json"], late_seconds=0)
    await store.cleanup.clear(job.id, found)
    assert await store.cleanup.find_due(limit=9) == [(job.id, ("1.2.json",))]


async def test_what_was_deleted_is_due_once_more_since_a_write_may_come_late(
    store: RecordStore,
) -> None:
    job = await ended(store, completed())
    await store.cleanup.note(job.id, ["1.json"])
    await store.cleanup.clear(job.id, ["1.json"])
    assert await store.cleanup.find_due(limit=9) == []
    await store.cleanup.push_back(job.id, seconds=-1)  # as if the time had come
    assert await store.cleanup.find_due(limit=9) == [(job.id, ("1.json",))]


async def test_a_key_that_is_noted_between_both_times_is_due_at_once(store: RecordStore) -> None:
    """The second attempt is lost while what the first one left waits for its second look."""
    job = await inserted(store)
    await store.cleanup.note(job.id, ["1.json"])
    await store.cleanup.clear(job.id, ["1.json"])
    await store.cleanup.note(job.id, ["1.2.json"], late_seconds=0)
    ((_, keys),) = await store.cleanup.find_due(limit=9)
    assert sorted(keys) == ["1.2.json", "1.json"]
    await store.cleanup.clear(job.id, keys)
    assert await store.cleanup.find_due(limit=9) == []
    await store.cleanup.push_back(job.id, seconds=-1)
    ((_, keys),) = await store.cleanup.find_due(limit=9)
    assert sorted(keys) == ["1.2.json", "1.json"]


async def test_a_key_that_was_noted_during_the_first_deletion_stays_due(
    store: RecordStore,
) -> None:
    job = await inserted(store)
    await store.cleanup.note(job.id, ["1.json"])
    await store.cleanup.note(job.id, ["1.2.json"])
    await store.cleanup.clear(job.id, ["1.json"])
    ((_, keys),) = await store.cleanup.find_due(limit=9)
    assert sorted(keys) == ["1.2.json", "1.json"]


async def test_no_keys_and_unknown_jobs_leave_no_note(store: RecordStore) -> None:
    job = await inserted(store)
    await store.cleanup.note(job.id, [])
    await store.cleanup.note(new_job_id(), ["1.json"])
    await store.cleanup.clear(new_job_id(), ["1.json"])
    assert await store.cleanup.find_due(limit=9) == []


async def test_what_is_pushed_back_makes_way_for_others(store: RecordStore) -> None:
    first, second = await inserted(store), await inserted(store)
    for job in (first, second):
        await store.cleanup.note(job.id, [f"{job.id}.json"])
    ((found, _),) = await store.cleanup.find_due(limit=1)
    await store.cleanup.push_back(found, seconds=60)
    ((other, _),) = await store.cleanup.find_due(limit=9)
    assert {found, other} == {first.id, second.id}
    await store.cleanup.push_back(found, seconds=-1)
    assert len(await store.cleanup.find_due(limit=9)) == 2


async def test_pushing_back_makes_no_note(store: RecordStore) -> None:
    job = await inserted(store)
    await store.cleanup.push_back(job.id, seconds=-1)
    assert await store.cleanup.find_due(limit=9) == []


async def test_limit_counts_jobs(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(3)]
    for job in jobs:
        both = [f"{job.id}.json", f"{job.id}.2.json"]
        await store.cleanup.note(job.id, both, late_seconds=0)
    found = await store.cleanup.find_due(limit=2)
    assert len(found) == 2
    for job_id, keys in found:
        await store.cleanup.clear(job_id, keys)
    rest = await store.cleanup.find_due(limit=9)
    assert {job_id for job_id, _ in found + rest} == {job.id for job in jobs}
