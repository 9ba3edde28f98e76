"""Run one attempt at a job: extract, seal, store (design section 4, step 5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import trio

from fetcher.commands.job_failures import failure_of
from fetcher.commands.job_progress import ProgressBoard, keep_noted
from fetcher.commands.job_sources import TENANT, JobFailed, JobParked, JobSources
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.compat import normalized_request
from fetcher.domain.connections import Connection
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.job_filters import source_names
from fetcher.domain.job_order import lowered_limits
from fetcher.domain.jobs import (
    FailureFacts,
    Job,
    JobStatus,
    Lease,
    LeaseState,
    Parking,
    ResultFacts,
    TerminalOutcome,
)
from fetcher.domain.result_keys import attempt_keys, result_key
from fetcher.domain.terminal_event import (
    JOB_CANCELLED,
    completed_mark,
    failed_mark,
)
from fetcher.ports import (
    JobLeases,
    ObjectCleanup,
    ObjectStore,
    SourceEngines,
    UtcNow,
)
from fetcher_engine import EngineError, ExtractionRequest

TIDY_SECONDS = 10.0
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
    keeps_default_schema: bool = False


class RunJob:
    """Implements what an extractor needs of a job; knows no actor."""

    def __init__(self, parts: JobRunParts) -> None:
        self._parts = parts

    async def run(self, job: Job, lease: Lease) -> TerminalOutcome | Parking:
        """The outcome to be written. Cancelled, failed or parked: no object is left visible.

        Meanwhile the record hears every two seconds what has been read.
        """
        await self._note_lost_attempts(job, lease)
        board = ProgressBoard()
        outcomes: list[TerminalOutcome | Parking] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(keep_noted, board, leases=self._parts.leases, lease=lease))
            outcomes.append(await self._outcome(job, lease, board))
            nursery.cancel_scope.cancel()
        outcome = outcomes[0]
        if isinstance(outcome, Parking):
            return outcome
        return replace(outcome, progress=board.snapshot())

    async def _note_lost_attempts(self, job: Job, lease: Lease) -> None:
        """What the attempts before this one may have left is deleted by the reaper: also where this
        process is killed after its record is written and before it has tidied up itself."""
        lost = attempt_keys(self._parts.key_prefix, job.id, lease.attempt - 1)
        if lost:
            try:
                await self._parts.cleanup.note(job.id, lost)
            except PortError:
                # Tidying at the end deletes the same objects, as long as this process lives.
                return

    async def _outcome(
        self, job: Job, lease: Lease, board: ProgressBoard
    ) -> TerminalOutcome | Parking:
        started_at = trio.current_time()
        try:
            facts = await self._extract(job, lease, board)
        except JobFailed as failed:
            return self._failed(job, failed.failure)
        except JobParked as parked:
            return parked.parking
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
        kept = None if keep_attempt is None else self._key(job, keep_attempt)
        await self._delete(job, [key for key in self.keys(job) if key != kept])

    def keys(self, job: Job) -> list[str]:
        """Where the attempts so far may have left an object or an unfinished upload."""
        return attempt_keys(self._parts.key_prefix, job.id, job.attempt)

    async def discard(self, job: Job, lease: Lease) -> None:
        await self._delete(job, [self._key(job, lease.attempt)])

    def _failed(self, job: Job, failure: FailureFacts) -> TerminalOutcome:
        mark = failed_mark(job, failure, at=self._parts.now())
        return TerminalOutcome(status=JobStatus.FAILED, event=mark, failure=failure)

    def _key(self, job: Job, attempt: int) -> str:
        return result_key(self._parts.key_prefix, job.id, attempt)

    async def _delete(self, job: Job, keys: Sequence[str]) -> None:
        if not keys:
            return
        with trio.CancelScope(shield=True), trio.move_on_after(2 * TIDY_SECONDS):
            left = list(keys)
            with trio.move_on_after(TIDY_SECONDS):
                for key in keys:
                    try:
                        await self._parts.objects.delete(key)
                        left.remove(key)
                    except PortError:
                        continue
            if left:
                try:
                    await self._parts.cleanup.note(job.id, left)
                except PortError:
                    # Both stores are away: the bucket's lifecycle rule is the last resort.
                    return

    async def _extract(self, job: Job, lease: Lease, board: ProgressBoard) -> ResultFacts | None:
        """The stored result; None when the job was asked to stop before it became visible."""
        connections = await self._parts.sources(job)
        key = self._key(job, lease.attempt)
        sealer = self._parts.new_sealer()
        storage_failures: list[PortError] = []
        try:
            engine = self._parts.engines.engine_for(
                connections, job.options, job.mapped_fields, job.filters
            )
            plan = await engine.plan_extraction(TENANT, self._request(job, connections))
            plan = replace(plan, request_id=str(job.id))
            await self._parts.breakers.note_reached(connections)
            async with self._parts.objects.upload(key) as upload:

                async def write(chunk: bytes | memoryview) -> None:
                    try:
                        await upload.write(sealer.feed(chunk))
                    except PortError as failure:
                        storage_failures.append(failure)
                        raise

                summary = await engine.stream_extraction(plan, write, progress=board)
                await upload.write(sealer.finish())
                if not await self._may_become_visible(lease):
                    return None
                await upload.complete()
        except EngineError as error:
            await self._parts.breakers.note_failure(connections, error)
            failure = storage_failures[0] if storage_failures else error
            raise JobFailed(failure_of(failure, connections)) from None
        except PortError as error:
            raise JobFailed(failure_of(error)) from None
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
