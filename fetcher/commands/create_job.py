"""Create a job, or find the one that the same request made already (spec rest-api 9)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import trio

from fetcher.commands.idempotency import IdempotencyKeys
from fetcher.commands.job_admission import JobAdmission, TooManyPendingJobs
from fetcher.commands.preflight import Preflight
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.errors import (
    DuplicateActiveJob,
    DuplicateIdempotencyKey,
    FetcherError,
    PortUnavailable,
)
from fetcher.domain.ids import new_job_id
from fetcher.domain.job_order import CheckedOrder, JobOrder, JudgedOrder, judged_order
from fetcher.domain.jobs import Job, JobStatus, idempotency_key
from fetcher.domain.source_admission import admitted_sources
from fetcher.domain.times import cut_to_milliseconds
from fetcher.domain.trace_context import current_trace
from fetcher.ports import JobRecords, UtcNow
from fetcher_engine import Limits, TenantContext

DUPLICATE_WINDOW_SECONDS = 300.0
INSERT_SECONDS = 20.0
DISPATCH_LEASE_SECONDS = 5.0
"""A new job is its own process's to dispatch, which spares the claim. Where the hint is lost, a
sweep finds it that much later."""


FindRepeated: TypeAlias = Callable[[str], Awaitable[Job | None]]
"""By the hash of a request: the job that answers it, also one that has ended."""


@dataclass(frozen=True, slots=True)
class CreatedJob:
    job: Job
    is_new: bool
    """False: the request is a repeat, and this is the job it made before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """What the host's settings say about new jobs."""

    ceilings: Limits
    options_enabled: bool = True
    preflight_test: bool = True
    keeps_default_schema: bool = False
    """Whether bare names lie in their type's default schema, whatever the connection's own is."""
    path: str = "/v1/fetcher"
    """Where jobs are asked for: part of what an ``Idempotency-Key`` is bound to."""


class CreateJob:
    """Judge the request, look for a repeat, admit it, test the connections, store the job, hint.

    ``hint`` hands the new job to the dispatcher, and says until when on trio's clock it may be
    sent; it neither waits nor fails.
    """

    def __init__(
        self,
        *,
        resolve: ResolveSources,
        jobs: JobRecords,
        preflight: Preflight,
        admission: JobAdmission,
        hint: Callable[[Job, float], None],
        now: UtcNow,
        rules: JobRules,
    ) -> None:
        self._resolve = resolve
        self._jobs = jobs
        self._preflight = preflight
        self._admission = admission
        self._keys = IdempotencyKeys(jobs, now)
        self._hint = hint
        self._now = now
        self._rules = rules

    def judge(self, order: JobOrder) -> JudgedOrder:
        """What can be said of a request without a look outside: pure, and safe in a thread.

        Raise a FetcherError with the code of spec 9.2's first failing step among 2 to 6.
        """
        return judged_order(
            order, ceilings=self._rules.ceilings, options_enabled=self._rules.options_enabled
        )

    async def __call__(
        self, judged: JudgedOrder, *, tenant: TenantContext, key: str | None = None
    ) -> CreatedJob:
        """Raise a FetcherError with the code of spec 9.2's first failing step from 7 on.

        ``key`` is the caller's ``Idempotency-Key``: looked at before duplicates.
        Once the job is being stored, the caller's cancellation waits for the store's answer: a
        client that goes away leaves either a job that will be dispatched, or none.
        """
        digest = judged.request_hash
        scoped_key = None
        if key is not None:
            scoped_key = idempotency_key(
                path=self._rules.path, key=key, product_name=judged.asked.source
            )
            held = await self._keys.find(scoped_key, request_hash=digest)
            if held is not None:
                return CreatedJob(held, is_new=False)
        repeated = await self._find_repeated(digest)
        if repeated is not None:
            return await self._repeat(repeated, scoped_key)
        return await self._create(judged, tenant, scoped_key, find_repeated=self._find_repeated)

    async def anew(self, judged: JudgedOrder, *, tenant: TenantContext) -> CreatedJob:
        """Spec 9.2 from step 8 on: whatever has ended is no repeat; what still runs is."""
        return await self._create(judged, tenant, None, find_repeated=_find_none)

    async def _create(
        self,
        judged: JudgedOrder,
        tenant: TenantContext,
        scoped_key: str | None,
        *,
        find_repeated: FindRepeated,
    ) -> CreatedJob:
        asked, digest = judged.asked, judged.request_hash
        refused: TooManyPendingJobs | None = None
        try:
            await self._admission.admit(asked.source)
        except TooManyPendingJobs as too_many:
            refused = too_many
        if refused is not None:
            # A repeat is never refused, and in a long queue it may be older than the window.
            active = await self._jobs.find_active_by_hash(digest)
            if active is None:
                raise refused
            return await self._repeat(active, scoped_key)
        connections = await self._resolve(sorted(asked.mapped_fields))
        admitted_sources(asked, connections, keeps_default=self._rules.keeps_default_schema)
        if self._rules.preflight_test:
            stored = [connection for connection in connections if not connection.is_internal]
            # Somebody else's job of this request may have come and ended during the tests: no
            # unique index stands in the way of ours then.
            if await self._preflight.check(stored, tenant=tenant):
                repeated = await find_repeated(digest)
                if repeated is not None:
                    return await self._repeat(repeated, scoped_key)
        return await self._store(self._pending(asked, digest, scoped_key), find_repeated)

    async def _find_repeated(self, digest: str) -> Job | None:
        found = await self._jobs.find_latest_by_hash(
            digest, within_seconds=DUPLICATE_WINDOW_SECONDS
        )
        return found if found is not None and _counts_as_repeat(found) else None

    async def _repeat(self, job: Job, scoped_key: str | None) -> CreatedJob:
        return CreatedJob(await self._keys.give(scoped_key, job), is_new=False)

    def _pending(self, asked: CheckedOrder, digest: str, scoped_key: str | None) -> Job:
        return Job(
            id=new_job_id(),
            status=JobStatus.PENDING,
            created_at=cut_to_milliseconds(self._now()),
            mapped_fields=asked.mapped_fields,
            request_hash=digest,
            filters=asked.filters,
            metadata=asked.metadata,
            options=asked.options,
            request_id=asked.request_id,
            trace=current_trace(),
            idempotency_key=scoped_key,
        )

    async def _store(self, job: Job, find_repeated: FindRepeated) -> CreatedJob:
        with trio.CancelScope(shield=True), trio.move_on_after(INSERT_SECONDS):
            return await self._insert_or_find(job, find_repeated)
        raise PortUnavailable("the record store did not answer in time")

    async def _insert_or_find(self, job: Job, find_repeated: FindRepeated) -> CreatedJob:
        """Spec 9.6: insert; on conflict find the other one; once more if it ended in between, and
        that is no repeat."""
        for _ in range(2):
            until = trio.current_time() + DISPATCH_LEASE_SECONDS / 2
            try:
                await self._jobs.insert(job, dispatch_lease_seconds=DISPATCH_LEASE_SECONDS)
            except (DuplicateActiveJob, DuplicateIdempotencyKey):
                pass
            else:
                self._hint(job, until)
                return CreatedJob(job, is_new=True)
            other = await self._conflicting(job) or await find_repeated(job.request_hash)
            if other is not None and other.id == job.id:
                # A driver that tried again met its own first try: that took effect, and its answer
                # was lost.
                self._hint(job, until)
                return CreatedJob(job, is_new=True)
            if other is not None:
                return await self._repeat(other, job.idempotency_key)
        raise FetcherError(
            "FET-0002", "Internal Server Error", "the job could not be told from a repeat"
        )

    async def _conflicting(self, job: Job) -> Job | None:
        """Whose key or hash stood in the way. The key says more: its job may have ended."""
        if job.idempotency_key is not None:
            held = await self._keys.find(job.idempotency_key, request_hash=job.request_hash)
            if held is not None:
                return held
        return await self._jobs.find_active_by_hash(job.request_hash)


async def _find_none(_digest: str) -> None:
    """For a request that is to run whatever has ended."""


_COUNT_AS_REPEAT = frozenset({JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.COMPLETED})
"""Failed and cancelled jobs may be asked for again at once (spec 9.5, decisions)."""


def _counts_as_repeat(job: Job) -> bool:
    return job.status in _COUNT_AS_REPEAT and job.result_deleted_at is None
