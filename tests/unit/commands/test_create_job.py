"""What a request that is cancelled in the middle leaves behind (spec rest-api 9.7)."""

from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.adapters.memory.records import open_memory_records
from fetcher.commands.create_job import INSERT_SECONDS, CreateJob, JobRules
from fetcher.commands.job_admission import JobAdmission
from fetcher.commands.preflight import Preflight
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.errors import DuplicateActiveJob, PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_order import JobOrder
from fetcher.domain.jobs import Job
from fetcher.ports import ConnectionRecords, JobRecords
from fetcher_engine import Limits, TenantContext
from tests.unit.api.harness import START, MemoryEngines, a_connection

TENANT = TenantContext.new("default")


class OneConnection:
    async def find_by_config_names(self, names: object) -> list[Any]:
        return [a_connection()]


class SlowJobs:
    """Its insert takes a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.inserting = trio.Event()
        self.inserted: list[Job] = []

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> None:
        await trio.lowlevel.checkpoint()

    async def insert(self, job: Job, *, dispatch_lease_seconds: float) -> None:
        self.inserting.set()
        await trio.sleep(self.seconds)
        self.inserted.append(job)


class MetItself(SlowJobs):
    """Its insert takes effect and is tried again, as by a driver whose answer was lost."""

    async def insert(self, job: Job, *, dispatch_lease_seconds: float) -> None:
        await super().insert(job, dispatch_lease_seconds=dispatch_lease_seconds)
        raise DuplicateActiveJob("an active job with this request hash exists")

    async def find_active_by_hash(self, request_hash: str) -> Job | None:
        await trio.lowlevel.checkpoint()
        return next((job for job in self.inserted if job.request_hash == request_hash), None)


def a_use_case(jobs: SlowJobs, hints: list[JobId]) -> CreateJob:
    return CreateJob(
        resolve=ResolveSources(
            internal=EnvironmentSources(), stored=cast("ConnectionRecords", OneConnection())
        ),
        jobs=cast("JobRecords", jobs),
        preflight=Preflight(MemoryEngines(), open_memory_records(lambda: START).breakers),
        admission=JobAdmission(cast("JobRecords", jobs), max_pending=0, max_pending_of_product=0),
        hint=lambda job, _until: hints.append(job.id),
        now=lambda: START,
        rules=JobRules(ceilings=Limits.defaults()),
    )


def an_order() -> JobOrder:
    return JobOrder(
        mapped_fields={"sales_db": {"orders": ["id"]}}, metadata={"source": "acme-reports"}
    )


async def run(use_case: CreateJob) -> None:
    await use_case(use_case.judge(an_order()), tenant=TENANT)


async def test_client_that_goes_away_during_the_insert_leaves_a_hinted_job(
    autojump_clock: MockClock,
) -> None:
    jobs, hints = SlowJobs(5), list[JobId]()
    async with trio.open_nursery() as nursery:

        async def request() -> None:
            await run(a_use_case(jobs, hints))

        nursery.start_soon(request)
        await jobs.inserting.wait()
        nursery.cancel_scope.cancel()
    assert hints == [job.id for job in jobs.inserted]
    assert len(hints) == 1


async def test_client_that_goes_away_before_the_insert_leaves_nothing(
    autojump_clock: MockClock,
) -> None:
    jobs, hints = SlowJobs(0), list[JobId]()
    with trio.CancelScope() as scope:
        scope.cancel()
        await run(a_use_case(jobs, hints))
    assert scope.cancelled_caught
    assert (jobs.inserted, hints) == ([], [])


async def test_insert_that_meets_its_own_first_try_is_a_new_job_and_is_hinted(
    autojump_clock: MockClock,
) -> None:
    jobs, hints = MetItself(0), list[JobId]()
    use_case = a_use_case(jobs, hints)
    created = await use_case(use_case.judge(an_order()), tenant=TENANT)
    assert [created.job] == jobs.inserted
    assert (created.is_new, hints) == (True, [created.job.id])


async def test_record_store_that_never_answers_is_given_up(autojump_clock: MockClock) -> None:
    jobs, hints = SlowJobs(10_000), list[JobId]()
    began = trio.current_time()
    with pytest.raises(PortUnavailable):
        await run(a_use_case(jobs, hints))
    assert trio.current_time() - began == pytest.approx(INSERT_SECONDS)
    assert hints == []
