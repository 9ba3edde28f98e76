"""What the next process of a data folder does with the records of the one before (design 8)."""

from dataclasses import replace
from datetime import timedelta

from fetcher.adapters.sqlite import Recovered, SqliteRecordStore
from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown, failed, probed_by
from fetcher.domain.job_store import FinishAnswer
from fetcher.domain.jobs import JobStatus
from tests.contract.records.builders import (
    LEASE_SECONDS,
    a_connection,
    claimed,
    completed,
    ended,
    inserted,
    now,
    read,
)

LONG = 3600.0


async def test_pending_jobs_are_dispatched_again_whatever_became_of_their_message(
    store: SqliteRecordStore,
) -> None:
    dispatched, leased, untouched = [await inserted(store) for _ in range(3)]
    await store.dispatch.mark_dispatched({dispatched.id: 0})
    await store.dispatch.claim_due(limit=9, lease_seconds=LONG, job_ids=[leased.id])
    recovered = await store.recovery.recover()
    assert recovered == Recovered(undispatched=2, expired=0, events=0)
    due = await store.dispatch.claim_due(limit=9, lease_seconds=LONG)
    assert {claim.job.id: claim.dispatch_seq for claim in due} == {
        dispatched.id: 1,
        leased.id: 1,
        untouched.id: 0,
    }


async def test_jobs_of_the_dead_owner_expire_at_once_and_count_a_takeover(
    store: SqliteRecordStore,
) -> None:
    claim = await claimed(store, await inserted(store), lease_seconds=LONG)
    recovered = await store.recovery.recover()
    assert recovered == Recovered(undispatched=0, expired=1, events=0)
    (seen,) = await store.expired.find_expired(limit=9)
    assert seen.id == claim.job.id
    assert await store.expired.requeue(seen)
    again = await claimed(store, seen)
    assert (again.job.takeovers, again.job.attempt) == (1, 2)
    assert await store.leases.finish(claim.lease, completed()) is FinishAnswer.SUPERSEDED


async def test_events_that_were_being_published_are_due_at_once(store: SqliteRecordStore) -> None:
    job = await ended(store, completed())
    await store.events.claim_due(limit=9, lease_seconds=LONG)
    recovered = await store.recovery.recover()
    assert recovered == Recovered(undispatched=0, expired=0, events=1)
    (event,) = await store.events.claim_due(limit=9, lease_seconds=LONG)
    assert event.job_id == job.id


async def test_parked_and_ended_jobs_stay_as_they_are(store: SqliteRecordStore) -> None:
    parked = await inserted(store, due_at=now() + timedelta(hours=1), waiting_reason="breaker open")
    done = await ended(store, completed())
    assert await store.recovery.recover() == Recovered(undispatched=0, expired=0, events=0)
    assert await read(store, parked) == parked
    assert await read(store, done) == done


async def test_second_recovery_finds_nothing(store: SqliteRecordStore) -> None:
    await claimed(store, await inserted(store), lease_seconds=LEASE_SECONDS)
    await store.dispatch.mark_dispatched({(await inserted(store)).id: 0})
    await store.recovery.recover()
    assert await store.recovery.recover() == Recovered(undispatched=0, expired=0, events=0)
    (seen,) = await store.expired.find_expired(limit=9)
    assert seen.status is JobStatus.PROCESSING


async def test_probe_of_the_dead_owner_is_given_to_the_next(store: SqliteRecordStore) -> None:
    connection = a_connection()
    fails = failed(connection, SourceDown(stage="auth", reason="auth"))
    for _ in range(FAILURES_TO_OPEN - 1):
        await store.breakers.change(connection.id, fails)
    opened = await store.breakers.change(connection.id, fails)
    assert opened.after is not None
    probed = replace(
        opened.after, retry_at=now(), probe_token=b"p" * 16, probe_until=now() + timedelta(hours=1)
    )
    await store.breakers.change(connection.id, lambda _, __: probed)
    await store.recovery.recover()
    change = await store.breakers.change(connection.id, probed_by(b"q" * 16, connection))
    assert change.after is not None
    assert change.after.probe_token == b"q" * 16
