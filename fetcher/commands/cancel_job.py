"""Ask a job to stop (design section 4, "States")."""

from collections.abc import Callable
from dataclasses import dataclass

import trio

from fetcher.domain.errors import FetcherError, JobNotFound, PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import CancelAnswer
from fetcher.domain.jobs import Job
from fetcher.domain.result_keys import attempt_keys
from fetcher.domain.terminal_event import JOB_CANCELLED, failed_mark
from fetcher.ports import JobRecords, ObjectCleanup, UtcNow

CANCEL_SECONDS = 20.0


class JobEnded(FetcherError):
    def __init__(self, job: Job) -> None:
        super().__init__(
            "FET-1022",
            "Job Ended",
            f"the job has ended already: {job.status}",
            details={"status": str(job.status)},
        )


@dataclass(frozen=True, slots=True)
class CancelledJob:
    job: Job
    """As the record shows it now."""
    has_ended: bool
    """False: its worker was asked, and ends it."""


class CancelJob:
    """A pending job ends at once, a running one is ended by its worker.

    ``hint`` tells the relay of the event that waits. Objects that earlier attempts of a job may
    have left are noted for a process that has the store; ``key_prefix`` is the tenant's.
    """

    def __init__(
        self,
        *,
        jobs: JobRecords,
        cleanup: ObjectCleanup,
        hint: Callable[[JobId], None],
        now: UtcNow,
        key_prefix: str,
    ) -> None:
        self._jobs = jobs
        self._cleanup = cleanup
        self._hint = hint
        self._now = now
        self._key_prefix = key_prefix

    async def __call__(self, job_id: JobId) -> CancelledJob:
        """Raise ``FET-1001``, or ``FET-1022`` where it has completed or failed.

        Once the record is being written, the caller's cancellation waits.
        """
        job = await self._job(job_id)
        mark = failed_mark(job, JOB_CANCELLED, at=self._now())
        with trio.CancelScope(shield=True), trio.move_on_after(CANCEL_SECONDS):
            match await self._jobs.request_cancel(job_id, mark):
                case CancelAnswer.UNKNOWN:
                    raise JobNotFound(job_id)
                case CancelAnswer.ENDED:
                    raise JobEnded(await self._job(job_id))
                case CancelAnswer.REQUESTED:
                    return CancelledJob(await self._job(job_id), has_ended=False)
                case CancelAnswer.CANCELLED:
                    self._hint(job_id)
                    ended = await self._job(job_id)
                    keys = attempt_keys(self._key_prefix, job_id, ended.attempt)
                    if keys:
                        await self._cleanup.note(job_id, keys)
                    return CancelledJob(ended, has_ended=True)
        raise PortUnavailable("the record store did not answer in time")

    async def _job(self, job_id: JobId) -> Job:
        job = await self._jobs.get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        return job
