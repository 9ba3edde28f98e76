"""Run one attempt at a job: extract, seal, store (design section 4, step 5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import trio

from fetcher.commands.job_failures import failure_of
from fetcher.commands.job_progress import ProgressBoard, keep_noted
from fetcher.commands.job_sources import JobFailed, JobParked, JobSources
from fetcher.commands.left_objects import LeftObjects
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.compat import normalized_request
from fetcher.domain.connections import Connection
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.job_filters import source_names
from fetcher.domain.job_order import lowered_limits
from fetcher.domain.job_stages import JobObserver, JobStage, StageClock
from fetcher.domain.job_store import Lease, LeaseState
from fetcher.domain.jobs import FailureFacts, Job, JobStatus, Parking, ResultFacts, TerminalOutcome
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.terminal_event import (
    JOB_CANCELLED,
    completed_mark,
    failed_mark,
)
from fetcher.ports import (
    SPAN_CANCELLED,
    UNTRACED,
    JobLeases,
    ObjectCleanup,
    ObjectStore,
    SourceEngines,
    Span,
    Tracer,
    Upload,
    UtcNow,
)
from fetcher_engine import EngineError, ExtractionRequest, TenantContext

LOST_PAUSE_SECONDS = 1.0


class Sealer(Protocol):
    """Signs, encrypts and encodes a document that streams by (fetcher.crypto.sealer)."""

    @property
    def hmac_hex(self) -> str: ...
    @property
    def plaintext_bytes(self) -> int: ...

    def feed(self, chunk: bytes | memoryview) -> bytes | memoryview: ...

    def finish(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunParts:
    """``key_prefix`` is the tenant's (:meth:`Tenant.object_prefix`)."""

    sources: JobSources
    breakers: SourceBreakers
    leases: JobLeases
    engines: SourceEngines
    objects: ObjectStore
    cleanup: ObjectCleanup
    new_sealer: Callable[[], Sealer]
    key_version: str
    key_prefix: str
    now: UtcNow
    observer: JobObserver
    keeps_default_schema: bool = False
    tenant: Tenant = NO_TENANT
    tracer: Tracer = UNTRACED


SAVE_SPAN: Final = "service.extract_external_data.save_external_data"


def tell_outcome(span: Span, outcome: TerminalOutcome | Parking) -> None:
    if isinstance(outcome, Parking):
        span.note("fetcher.job.parked", True)
        return
    span.note("fetcher.job.status", outcome.status.value)
    if outcome.result is not None:
        span.note("fetcher.result.rows", outcome.result.row_count)
        span.note("fetcher.result.bytes", outcome.result.size_bytes)
    if outcome.status is JobStatus.CANCELLED:
        span.note(SPAN_CANCELLED, True)
    elif outcome.failure is not None:
        span.fail(outcome.failure.code)


class RunJob:
    """Implements what an extractor needs of a job; knows no actor."""

    def __init__(self, parts: JobRunParts) -> None:
        self._parts = parts
        self._tenant = TenantContext.new(parts.tenant.engine_id)
        self._left = LeftObjects(
            objects=parts.objects, cleanup=parts.cleanup, key_prefix=parts.key_prefix
        )

    async def run(self, job: Job, lease: Lease) -> TerminalOutcome | Parking:
        """The outcome to be written. Cancelled, failed or parked: no object is left visible.

        A cancellation that comes once the object is visible waits: only the record decides then.
        Meanwhile the record hears every two seconds what has been read.
        """
        await self._left.note_lost_attempts(job, lease)
        board = ProgressBoard(self._parts.observer.extracted)
        outcomes: list[TerminalOutcome | Parking] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(keep_noted, board, leases=self._parts.leases, lease=lease))
            with self._parts.tracer.span(
                "service.extract_external_data",
                attributes={
                    "fetcher.attempt": lease.attempt,
                    "fetcher.sources": len(job.mapped_fields),
                },
            ) as span:
                outcomes.append(await self._outcome(job, lease, board, nursery.cancel_scope))
                tell_outcome(span, outcomes[0])
            nursery.cancel_scope.cancel()
        outcome = outcomes[0]
        if isinstance(outcome, Parking):
            return outcome
        return replace(outcome, progress=board.snapshot())

    async def _outcome(
        self, job: Job, lease: Lease, board: ProgressBoard, scope: trio.CancelScope
    ) -> TerminalOutcome | Parking:
        started_at = trio.current_time()
        stages = StageClock(trio.current_time)
        try:
            facts = await self._extract(job, lease, board, stages=stages, scope=scope)
        except JobFailed as failed:
            return self._failed(job, failed.failure)
        except JobParked as parked:
            return parked.parking
        finally:
            stages.tell(self._parts.observer)
        if facts is None:
            return self.cancelled(job)
        completed_at = self._parts.now()
        execution_ms = int((trio.current_time() - started_at) * 1000)
        mark = completed_mark(job, facts, completed_at=completed_at, execution_ms=execution_ms)
        return TerminalOutcome(status=JobStatus.COMPLETED, event=mark, result=facts)

    def cancelled(self, job: Job) -> TerminalOutcome:
        mark = failed_mark(job, JOB_CANCELLED, at=self._parts.now())
        return TerminalOutcome(status=JobStatus.CANCELLED, event=mark, failure=JOB_CANCELLED)

    def lost(self, job: Job) -> TerminalOutcome:
        """The outcome of a job whose workers died too often."""
        failure = FailureFacts(
            message="job failed: its worker was lost too often", code="worker_lost"
        )
        return self._failed(job, failure)

    async def tidy(self, job: Job, *, keep_attempt: int | None) -> None:
        """Delete the objects of all attempts but the one to keep; what fails is noted."""
        kept = None if keep_attempt is None else self._left.key(job, keep_attempt)
        await self._left.delete(job, [key for key in self.keys(job) if key != kept])

    def keys(self, job: Job) -> list[str]:
        """Where the attempts so far may have left an object or an unfinished upload."""
        return self._left.keys(job)

    async def discard(self, job: Job, lease: Lease) -> None:
        await self._left.delete(job, [self._left.key(job, lease.attempt)])

    def _failed(self, job: Job, failure: FailureFacts) -> TerminalOutcome:
        mark = failed_mark(job, failure, at=self._parts.now())
        return TerminalOutcome(status=JobStatus.FAILED, event=mark, failure=failure)

    async def _extract(
        self,
        job: Job,
        lease: Lease,
        board: ProgressBoard,
        *,
        stages: StageClock,
        scope: trio.CancelScope,
    ) -> ResultFacts | None:
        """The stored result; None when the job was asked to stop before it became visible.

        ``scope`` is the attempt's own: it is shielded from then on.
        """
        sources = await self._parts.sources(job)
        connections = sources.connections
        key = self._left.key(job, lease.attempt)
        sealer = self._parts.new_sealer()
        storage_failures: list[PortError] = []
        begun: list[Upload] = []
        try:
            engine = self._parts.engines.engine_for(
                connections, job.options, job.mapped_fields, job.filters
            )
            with stages.during(JobStage.CONNECT):
                plan = await engine.plan_extraction(self._tenant, self._request(job, connections))
            plan = replace(plan, request_id=str(job.id))
            await self._parts.breakers.note_reached(sources.failed_lately)
            async with self._parts.objects.upload(key) as upload:
                begun.append(upload)

                async def write(chunk: bytes | memoryview) -> None:
                    try:
                        with stages.during(JobStage.STORE):
                            await upload.write(sealer.feed(chunk))
                    except PortError as failure:
                        storage_failures.append(failure)
                        raise

                with stages.during(JobStage.READ):
                    summary = await engine.stream_extraction(plan, write, progress=board)
                with (
                    stages.during(JobStage.STORE),
                    self._parts.tracer.span(SAVE_SPAN) as saving,
                ):
                    await upload.write(sealer.finish())
                    if not await self._may_become_visible(lease):
                        saving.note(SPAN_CANCELLED, True)
                        return None
                    await upload.complete()
                    scope.shield = True
        except EngineError as error:
            await self._parts.breakers.note_failure(connections, error)
            failure = storage_failures[0] if storage_failures else error
            raise JobFailed(failure_of(failure, connections)) from None
        except PortError as error:
            raise JobFailed(failure_of(error)) from None
        finally:
            for upload in begun:
                await self._left.note_failed_upload(job, key, upload)
        return ResultFacts(
            path=key,
            hmac=sealer.hmac_hex,
            size_bytes=sealer.plaintext_bytes,
            row_count=summary.row_count,
            source_notes=dict(summary.source_notes),
            key_version=self._parts.key_version,
        )

    def _request(self, job: Job, connections: Sequence[Connection]) -> ExtractionRequest:
        names = source_names(connections, keeps_default=self._parts.keeps_default_schema)
        fields, filters = normalized_request(job.mapped_fields, job.filters, names)
        return ExtractionRequest(
            mapped_fields=fields, filters=filters, overrides=lowered_limits(job.options)
        )

    async def _may_become_visible(self, lease: Lease) -> bool:
        """False: the job was asked to stop. Without its lease an attempt gets no answer: killed
        between completing and the terminal write, it would leave an object that nobody knows of.
        The lease keeper ends it, which asks the same question every second.
        """
        while True:
            state = await self._lease_state(lease)
            if state is not LeaseState.LOST:
                return state is LeaseState.HELD
            await trio.sleep(LOST_PAUSE_SECONDS)

    async def _lease_state(self, lease: Lease) -> LeaseState:
        """What is found here saves an upload's last step; the terminal write decides anyway."""
        try:
            states = await self._parts.leases.check([lease])
        except PortUnavailable:
            return LeaseState.HELD
        return states[lease.job_id]
