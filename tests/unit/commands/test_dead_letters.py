"""What operators do with dead letters."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.memory import open_memory_records
from fetcher.commands.dead_letters import Choice, DeadLetters, Examined, Redriven
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import MessageSigner, MessageVerifier
from fetcher.domain.breakers import Breaker, SourceDown
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.job_store import RedriveAnswer
from fetcher.domain.jobs import EventMark, Job, JobStatus
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.work_message import encode_work_message, work_headers
from fetcher.ports import DispatchOutbox, RecordStore
from tests.contract.records.builders import a_connection

KEY = b"k" * 32
NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)


@dataclass
class Window:
    letters: list[DeadLetter]
    removed: list[int] = field(default_factory=list)
    asked: int = 0

    @property
    def gone(self) -> int:
        return len(self.removed)

    @property
    def total(self) -> int:
        return len(self.letters)

    async def next_page(self, *, limit: int) -> Sequence[DeadLetter]:
        await trio.lowlevel.checkpoint()
        page = self.letters[self.asked : self.asked + limit]
        self.asked += len(page)
        return page

    async def remove(self, letters: Sequence[DeadLetter]) -> None:
        await trio.lowlevel.checkpoint()
        self.removed += [letter.tag for letter in letters]


def a_job(**changes: object) -> Job:
    values: dict[str, object] = {
        "id": new_job_id(),
        "status": JobStatus.PENDING,
        "created_at": NOW,
        "mapped_fields": {"sales_db": {"orders": ("id",)}},
        "request_hash": str(new_job_id()),
    }
    return Job(**(values | changes))  # type: ignore[arg-type]  # a builder's


def letter_of(
    job: Job,
    *,
    tag: int = 1,
    key: bytes = KEY,
    reason: str = "unreadable_job",
    tenant: Tenant = NO_TENANT,
) -> DeadLetter:
    body = encode_work_message(job)
    signed = MessageSigner(key).headers(
        tenant=tenant.id,
        body=body,
        exchange="",
        routing_key="work",
        timestamp=int(NOW.timestamp()),
    )
    return DeadLetter(
        tag=tag,
        body=body,
        headers={**work_headers(job, tenant=tenant.id), **signed},
        exchange="",
        routing_key="work",
        reason=reason,
    )


def dead_letters(window: Window, *, at: datetime = NOW, tenant: Tenant = NO_TENANT) -> DeadLetters:
    verifier = VerifyWork(verifier=MessageVerifier([KEY]), now=lambda: at, tenant=tenant)
    return DeadLetters(window, verifier)


async def redriven(
    window: Window,
    outbox: DispatchOutbox,
    *,
    rate: float = 10_000,
    records: RecordStore | None = None,
    tenant: Tenant = NO_TENANT,
) -> dict[int, Redriven]:
    told: dict[int, Redriven] = {}

    def tell(each: Examined, result: Redriven) -> None:
        told[each.letter.tag] = result

    store = records or open_memory_records(lambda: NOW)
    held_back = HeldBackJobs(
        jobs=store.jobs,
        breakers=store.breakers,
        resolve=ResolveSources(internal=environment_sources(()), stored=store.connections),
        now=lambda: NOW,
    )
    await dead_letters(window, tenant=tenant).redrive(
        Choice(), outbox=outbox, held_back=held_back, jobs_a_second=rate, tell=tell
    )
    return told


async def test_genuine_letters_of_pending_jobs_are_dispatched_and_removed() -> None:
    records = open_memory_records(lambda: NOW)
    job, ended, unknown = a_job(dispatched_at=NOW), a_job(), a_job()
    for each in (job, ended):
        await records.jobs.insert(each)
    await records.jobs.request_cancel(ended.id, EventMark(status="failed", payload="{}", time=NOW))
    window = Window(
        [
            letter_of(job, tag=1),
            letter_of(ended, tag=2),
            letter_of(unknown, tag=3),
            letter_of(job, tag=4, key=b"x" * 32, reason="bad_signature"),
            DeadLetter(tag=5, body=b"{", headers={}, exchange="", routing_key="", reason=""),
        ]
    )
    assert await redriven(window, records.dispatch) == {
        1: Redriven.DISPATCHED,
        2: Redriven.ENDED,
        3: Redriven.UNKNOWN,
        4: Redriven.UNVERIFIED,
        5: Redriven.UNVERIFIED,
    }
    assert window.removed == [1]
    claims = await records.dispatch.claim_due(limit=9, lease_seconds=1)
    assert [(claim.job.id, claim.dispatch_seq) for claim in claims] == [(job.id, 1)]


async def test_a_letter_of_another_tenant_is_never_redriven() -> None:
    """Also where it names the right one, or a job of the right one."""
    records = open_memory_records(lambda: NOW)
    ours, theirs = Tenant("acme"), Tenant("globex")
    job, other = a_job(dispatched_at=NOW), a_job(dispatched_at=NOW)
    for each in (job, other):
        await records.jobs.insert(each)
    renamed = letter_of(other, tag=3, tenant=theirs)
    window = Window(
        [
            letter_of(job, tag=1, tenant=ours),
            letter_of(other, tag=2, tenant=theirs),
            replace(renamed, headers={**renamed.headers, "X-Tenant-ID": "acme"}),
            letter_of(other, tag=4),
        ]
    )
    assert await redriven(window, records.dispatch, tenant=ours) == {
        1: Redriven.DISPATCHED,
        2: Redriven.UNVERIFIED,
        3: Redriven.UNVERIFIED,
        4: Redriven.UNVERIFIED,
    }
    assert window.removed == [1]
    claims = await records.dispatch.claim_due(limit=9, lease_seconds=1)
    assert [claim.job.id for claim in claims] == [job.id]


async def test_a_message_of_any_age_is_genuine() -> None:
    window = Window([letter_of(a_job())])
    async with aclosing(dead_letters(window, at=NOW + timedelta(days=7)).pages(Choice())) as pages:
        (each,) = [one async for page in pages for one in page]
    assert (each.is_genuine, each.position, each.sent_at) == (True, 1, NOW)


class Outbox:
    """Answers after half a second, or fails at some call."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.asked: list[tuple[float, int]] = []
        self._fails_at = fails_at

    async def redrive(self, job_ids: Sequence[JobId]) -> dict[JobId, RedriveAnswer]:
        self.asked.append((trio.current_time(), len(job_ids)))
        await trio.sleep(0.5)
        if len(self.asked) == self._fails_at:
            raise PortUnavailable("away")
        return dict.fromkeys(job_ids, RedriveAnswer.DISPATCHED)


async def test_redriving_is_paced(autojump_clock: MockClock) -> None:
    outbox = Outbox()
    window = Window([letter_of(a_job(), tag=tag) for tag in range(1, 251)])
    told = await redriven(window, outbox, rate=10.0)  # type: ignore[arg-type]  # one method of it
    assert set(told.values()) == {Redriven.DISPATCHED}
    assert sorted(window.removed) == list(range(1, 251))
    assert [count for _, count in outbox.asked] == [25] * 10
    starts = [at for at, _ in outbox.asked]
    assert [later - earlier for earlier, later in pairwise(starts)] == [pytest.approx(2.5)] * 9


async def test_records_that_are_away_end_it_and_what_was_dispatched_is_removed(
    autojump_clock: MockClock,
) -> None:
    outbox = Outbox(fails_at=3)
    window = Window([letter_of(a_job(), tag=tag) for tag in range(1, 251)])
    with pytest.raises(PortUnavailable, match="away"):
        await redriven(window, outbox, rate=1000.0)  # type: ignore[arg-type]  # one method of it
    assert window.removed == list(range(1, 51))


@pytest.mark.parametrize(("seconds", "expected"), [(30, "held_back"), (-1, "dispatched")])
async def test_an_open_breaker_keeps_its_jobs_until_its_wait_is_over(
    seconds: float, expected: str
) -> None:
    records = open_memory_records(lambda: NOW)
    connection, job = a_connection(config_name="sales_db"), a_job()
    await records.connections.insert(connection)
    await records.jobs.insert(job)

    def open_until(_: Breaker | None, now: datetime) -> Breaker:
        return Breaker(
            connection_id=connection.id,
            config_name="sales_db",
            version=connection.updated_at,
            down=SourceDown(stage="tcp", reason="refused"),
            failures=5,
            openings=1,
            changed_at=now,
            retry_at=NOW + timedelta(seconds=seconds),
        )

    await records.breakers.change(connection.id, open_until)
    window = Window([letter_of(job)])
    assert await redriven(window, records.dispatch, records=records) == {1: Redriven(expected)}
    assert window.removed == ([] if expected == "held_back" else [1])


async def test_a_choice_is_of_one_reason_and_so_many() -> None:
    reasons = ["bad_signature", "unknown_job"] * 150
    letters = [letter_of(a_job(), tag=tag, reason=reason) for tag, reason in enumerate(reasons)]
    window = Window(letters)
    choice = Choice(reason="unknown_job", limit=120)
    assert await dead_letters(window).purge(choice) == 120
    assert window.removed == list(range(1, 240, 2))
    window = Window(letters[:5])
    assert await dead_letters(window).purge(Choice()) == 5


async def test_a_letter_is_found_by_its_place_and_by_its_job() -> None:
    jobs = [a_job() for _ in range(150)]
    letters = [letter_of(job, tag=tag) for tag, job in enumerate(jobs, 1)]
    for wanted in (120, jobs[119].id):
        found = await dead_letters(Window(letters)).find(wanted)
        assert found is not None
        assert (found.letter.tag, found.job_id) == (120, jobs[119].id)
    assert await dead_letters(Window(letters)).find(151) is None
