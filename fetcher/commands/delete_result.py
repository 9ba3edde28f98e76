"""Delete what a job stored; the job itself stays."""

import trio

from fetcher.domain.errors import FetcherError, JobNotFound, PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.domain.stored_results import NoObjectStore, ResultDeleted, stored_facts
from fetcher.domain.times import cut_to_milliseconds
from fetcher.ports import JobRecords, ObjectStore, UtcNow

DELETE_SECONDS = 90.0


class JobRuns(FetcherError):
    def __init__(self, job: Job) -> None:
        super().__init__(
            "FET-1021", "Job In Progress", f"the job has not ended: it is {job.status}"
        )


class DeleteResult:
    """The object goes first: if the record cannot be written then, deleting again mends it."""

    def __init__(self, *, jobs: JobRecords, objects: ObjectStore | None, now: UtcNow) -> None:
        self._jobs = jobs
        self._objects = objects
        self._now = now

    async def __call__(self, job_id: JobId) -> None:
        """Raise ``FET-1001``, ``FET-1021`` while the job runs, ``FET-1024`` where there is no
        result any more; the caller's cancellation waits for both stores."""
        job = await self._jobs.get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        if job.status.is_active:
            raise JobRuns(job)
        facts = stored_facts(job)
        if self._objects is None:
            raise NoObjectStore
        with trio.CancelScope(shield=True), trio.move_on_after(DELETE_SECONDS):
            await self._objects.delete(facts.path)
            at = cut_to_milliseconds(self._now())
            if not await self._jobs.mark_result_deleted(job_id, at=at):
                raise ResultDeleted
            return
        raise PortUnavailable("the stores did not answer in time")
