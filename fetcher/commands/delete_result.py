"""Delete what a job stored; the job itself stays."""

import trio

from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.domain.times import cut_to_milliseconds
from fetcher.ports import JobRecords, ObjectStore, UtcNow
from fetcher.queries.get_job import get_job
from fetcher.queries.stored_result import ResultMissing, result_of

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
        job = await get_job(self._jobs, job_id)
        if job.status.is_active:
            raise JobRuns(job)
        found = await result_of(self._jobs, self._objects, job_id)
        with trio.CancelScope(shield=True), trio.move_on_after(DELETE_SECONDS):
            await found.objects.delete(found.facts.path)
            at = cut_to_milliseconds(self._now())
            if not await self._jobs.mark_result_deleted(job_id, at=at):
                raise ResultMissing("the result was deleted")
            return
        raise PortUnavailable("the stores did not answer in time")
