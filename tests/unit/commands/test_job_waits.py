"""Attempts at jobs whose connection is down: fail at once, wait, probe, come back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
import trio
import trio.testing

from fetcher.domain.breakers import FAILURES_TO_OPEN, Breaker
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import ConnectionId
from fetcher.domain.job_store import Claimed, JobQuery
from fetcher.domain.jobs import Job, JobStatus, Parking, TerminalOutcome
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher_engine import SourceFailure, Stage
from tests.unit.commands.job_bench import NOW, Bench, a_connection

AUTH = SourceFailure(Stage.AUTH, "auth")


class Down:
    """A bench whose one connection fails, and its jobs."""

    def __init__(self, failure: SourceFailure = AUTH, tenant: Tenant = NO_TENANT) -> None:
        self.bench = Bench(tenant=tenant)
        self.connection = a_connection()
        self.fail(failure)
        self._jobs = 0

    def fail(self, failure: SourceFailure | None) -> None:
        self.bench.source.test_error = failure
        self.bench.source.discovery_error = failure

    async def a_claim(self, **changes: object) -> Claimed:
        self._jobs += 1
        return await self.bench.claimed(request_hash=f"h{self._jobs}", **changes)

    async def attempt(self, **changes: object) -> TerminalOutcome | Parking:
        claim = await self.a_claim(**changes)
        outcome = await self.bench.run_job.run(claim.job, claim.lease)
        if isinstance(outcome, Parking):
            assert await self.bench.records.leases.park(
                claim.lease, until=outcome.until, reason=outcome.reason
            )
        else:
            await self.bench.records.leases.finish(claim.lease, outcome)
        return outcome

    async def breaker(self) -> Breaker | None:
        found = await self.bench.records.breakers.find([self.connection.id])
        return found.get(self.connection.id)

    async def the_parked_job(self) -> Job:
        page = await self.bench.records.jobs.list_page(JobQuery(limit=100))
        (job,) = [job for job in page.items if job.is_parked]
        return job

    async def opened(self) -> Breaker:
        for _ in range(FAILURES_TO_OPEN):
            outcome = await self.attempt()
            assert isinstance(outcome, TerminalOutcome)
            assert outcome.status is JobStatus.FAILED
        breaker = await self.breaker()
        assert breaker is not None
        assert breaker.retry_at is not None
        return breaker

    async def at_retry(self) -> Breaker:
        """Opened, and left alone for long enough."""
        breaker = await self.opened()
        assert breaker.retry_at is not None
        self.bench.now = breaker.retry_at
        return breaker


@pytest.fixture(params=[NO_TENANT, Tenant("t1")], ids=["no-tenant", "tenant"])
async def down(request: pytest.FixtureRequest) -> Down:
    """The memory sources know their connections under one tenant alone."""
    down = Down(tenant=request.param)
    await down.bench.records.connections.insert(down.connection)
    return down


async def test_five_jobs_fail_at_once_and_the_sixth_waits_without_opening_the_source(
    down: Down,
) -> None:
    breaker = await down.opened()
    built = len(down.bench.engines.built)
    outcome = await down.attempt()
    assert isinstance(outcome, Parking)
    assert (outcome.until, outcome.reason) == (breaker.retry_at, "connection sales_db is down")
    assert len(down.bench.engines.built) == built
    assert down.bench.log.lines == ["opened"]
    assert down.bench.objects.open_uploads == 0


@pytest.mark.parametrize(
    ("stage", "reason", "counts"),
    [
        (Stage.DNS, "dns", True),
        (Stage.TCP, "refused", True),
        (Stage.TCP, "unreachable", True),
        (Stage.TCP, "network", True),
        (Stage.AUTH, "auth", True),
        (Stage.TCP, "timeout", False),
        (Stage.TLS, "tls", False),
        (Stage.TCP, "host_refused", False),
        (Stage.AUTH, "credential", False),
        (Stage.SESSION, "too_many_sessions", False),
        (Stage.SESSION, "database_missing", False),
        (Stage.SCHEMA, "timeout", False),
        (Stage.QUERY, "refused", False),
    ],
)
async def test_what_counts_is_refused_login_or_name(
    down: Down, stage: Stage, reason: str, counts: bool
) -> None:
    down.fail(SourceFailure(stage, reason))
    await down.attempt()
    breaker = await down.breaker()
    if counts:
        assert breaker is not None
        assert (breaker.failures, breaker.down.stage, breaker.down.reason) == (1, stage, reason)
    else:
        assert breaker is None


@pytest.mark.parametrize(
    "changes",
    [{}, {"mapped_fields": {"sales_db": {"orders": ("id", "totl")}}}],
    ids=["completed", "schema mismatch"],
)
async def test_a_session_that_stood_begins_the_row_anew(
    down: Down, changes: dict[str, object]
) -> None:
    for _ in range(FAILURES_TO_OPEN - 1):
        await down.attempt()
    down.fail(None)
    await down.attempt(**changes)
    assert await down.breaker() is None
    down.fail(AUTH)
    await down.attempt()
    breaker = await down.breaker()
    assert breaker is not None
    assert breaker.failures == 1


async def test_a_failure_while_reading_is_a_session_that_stood(down: Down) -> None:
    await down.attempt()
    down.fail(None)
    down.bench.source.stream_error = SourceFailure(Stage.ROWS, "reset")
    await down.attempt()
    assert await down.breaker() is None


async def test_a_probe_that_fails_parks_its_job_for_longer_and_fails_none(down: Down) -> None:
    await down.at_retry()
    outcome = await down.attempt()
    breaker = await down.breaker()
    assert breaker is not None
    assert isinstance(outcome, Parking)
    assert outcome.until == breaker.retry_at
    assert (breaker.openings, breaker.probe_token) == (2, None)
    assert breaker.retry_at is not None
    assert breaker.retry_at >= down.bench.now + timedelta(seconds=30)


async def test_a_probe_that_succeeds_runs_its_job_and_wakes_the_others(down: Down) -> None:
    await down.opened()
    assert isinstance(await down.attempt(), Parking)
    waiting = await down.the_parked_job()
    # just before the parked one is due by itself
    await down.bench.records.breakers.change(
        down.connection.id, lambda b, _: replace(b, retry_at=NOW) if b else None
    )
    down.fail(None)
    outcome = await down.attempt()
    assert isinstance(outcome, TerminalOutcome)
    assert outcome.status is JobStatus.COMPLETED
    assert await down.breaker() is None
    assert down.bench.woken == [waiting.id]
    assert down.bench.log.lines == ["opened", "closed"]


async def test_while_one_probes_the_others_wait_for_it(
    autojump_clock: trio.testing.MockClock, down: Down
) -> None:
    await down.at_retry()
    down.bench.source.before_test = partial(trio.sleep, 5)
    outcomes: list[TerminalOutcome | Parking] = []
    built = len(down.bench.engines.built)

    async def attempt() -> None:
        outcomes.append(await down.attempt())

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(attempt)
    assert len(down.bench.engines.built) == built + 1
    assert all(isinstance(outcome, Parking) for outcome in outcomes)
    lease_ends = down.bench.now + timedelta(seconds=30)
    untils = [outcome.until for outcome in outcomes if isinstance(outcome, Parking)]
    assert untils.count(lease_ends) == 3


async def test_a_probe_without_an_answer_ends_after_ten_seconds(
    autojump_clock: trio.testing.MockClock, down: Down
) -> None:
    await down.at_retry()
    down.bench.source.before_test = trio.sleep_forever
    outcome = await down.attempt()
    assert trio.current_time() == pytest.approx(10)
    breaker = await down.breaker()
    assert breaker is not None
    assert isinstance(outcome, Parking)
    assert (outcome.until, breaker.down.reason) == (breaker.retry_at, "timeout")


async def test_a_job_that_waited_an_hour_fails_with_what_it_waited_for(down: Down) -> None:
    await down.opened()
    claim = await down.a_claim()
    waited = replace(claim.job, started_at=NOW - timedelta(seconds=3600))
    outcome = await down.bench.run_job.run(waited, claim.lease)
    assert isinstance(outcome, TerminalOutcome)
    assert outcome.status is JobStatus.FAILED
    failure = outcome.failure
    assert failure is not None
    assert (failure.code, failure.source, failure.stage, failure.reason) == (
        "connection_down",
        "sales_db",
        "auth",
        "auth",
    )
    assert failure.message == "connection sales_db is down: connect failed at auth: auth"


async def test_no_job_waits_beyond_its_hour(down: Down) -> None:
    await down.opened()
    claim = await down.a_claim()
    waited = replace(claim.job, started_at=NOW - timedelta(seconds=3595))
    outcome = await down.bench.run_job.run(waited, claim.lease)
    assert isinstance(outcome, Parking)
    assert outcome.until == NOW + timedelta(seconds=5)


async def test_one_connection_of_two_that_is_down_is_named_and_no_source_is_opened(
    down: Down,
) -> None:
    await down.opened()
    crm = a_connection(config_name="a_crm")
    await down.bench.records.connections.insert(crm)
    built = len(down.bench.engines.built)
    fields = {"a_crm": {"orders": ("id",)}, "sales_db": {"orders": ("id",)}}
    outcome = await down.attempt(mapped_fields=fields)
    assert isinstance(outcome, Parking)
    assert outcome.reason == "connection sales_db is down"
    assert len(down.bench.engines.built) == built
    alone = await down.attempt(mapped_fields={"a_crm": {"orders": ("id",)}})
    assert isinstance(alone, TerminalOutcome), "the other connection is not held back"


async def test_a_probe_that_is_cancelled_is_given_again_when_its_lease_has_run_out(
    autojump_clock: trio.testing.MockClock, down: Down
) -> None:
    breaker = await down.at_retry()
    down.bench.source.before_test = trio.sleep_forever
    with trio.move_on_after(1) as cut_off:
        await down.attempt()
    assert cut_off.cancelled_caught
    down.bench.source.before_test = trio.lowlevel.checkpoint
    down.fail(None)
    waiting = await down.attempt()
    assert isinstance(waiting, Parking)
    assert breaker.retry_at is not None
    assert waiting.until == breaker.retry_at + timedelta(seconds=30)
    down.bench.now = waiting.until
    outcome = await down.attempt()
    assert isinstance(outcome, TerminalOutcome)
    assert outcome.status is JobStatus.COMPLETED
    assert await down.breaker() is None


async def test_a_changed_connection_is_tried_at_once(down: Down) -> None:
    await down.opened()
    changed = replace(down.connection, updated_at=NOW + timedelta(seconds=1))
    await down.bench.records.connections.update(changed, before=down.connection)
    down.fail(None)
    outcome = await down.attempt()
    assert isinstance(outcome, TerminalOutcome)
    assert outcome.status is JobStatus.COMPLETED


async def test_recovery_forgets_the_breaker_and_wakes_who_waits(down: Down) -> None:
    await down.opened()
    await down.attempt()
    await down.bench.recover(down.connection.id, "sales_db")
    assert await down.breaker() is None
    job = await down.the_parked_job()
    assert down.bench.woken == [job.id]
    assert job.due_at is None


async def test_a_job_whose_sources_are_well_asks_for_breakers_once(
    down: Down, monkeypatch: pytest.MonkeyPatch
) -> None:
    down.fail(None)
    asked: list[Sequence[ConnectionId]] = []
    find = down.bench.records.breakers.find

    async def counted(ids: Sequence[ConnectionId]) -> Mapping[ConnectionId, Breaker]:
        asked.append(ids)
        return await find(ids)

    monkeypatch.setattr(down.bench.records.breakers, "find", counted)
    outcome = await down.attempt()
    assert isinstance(outcome, TerminalOutcome)
    assert outcome.status is JobStatus.COMPLETED
    assert asked == [[down.connection.id]]


async def test_a_record_store_that_does_not_answer_holds_no_job_back(
    down: Down, monkeypatch: pytest.MonkeyPatch
) -> None:
    await down.opened()
    down.fail(None)

    async def away(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("store away")

    monkeypatch.setattr(down.bench.records.breakers, "find", away)
    monkeypatch.setattr(down.bench.records.breakers, "change", away)
    outcome = await down.attempt()
    assert isinstance(outcome, TerminalOutcome)
    assert outcome.status is JobStatus.COMPLETED
    await down.bench.recover(down.connection.id, "sales_db")
    assert down.bench.log.lines == ["opened", *["unavailable"] * 3]
