"""One job: the authority over its state, ahead of every event (spec rest-api 9.8)."""

from fetcher.domain.errors import JobNotFound
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.ports import JobRecords


async def get_job(jobs: JobRecords, job_id: JobId) -> Job:
    """Raise ``FET-1001`` where there is none."""
    job = await jobs.get(job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job
