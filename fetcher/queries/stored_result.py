"""Where a job's result lies, if it has one (decisions, "Result over HTTP")."""

from dataclasses import dataclass

from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, JobStatus, ResultFacts
from fetcher.ports import JobRecords, ObjectStore
from fetcher.queries.get_job import get_job

GONE = "the stored result is gone from the object store"


class ResultMissing(FetcherError):
    def __init__(self, message: str) -> None:
        super().__init__("FET-1024", "Result Not Found", message)


class NoObjectStore(FetcherError):
    """A manager without a store cannot serve results (decisions, "S3 in the Manager")."""

    def __init__(self) -> None:
        super().__init__(
            "FET-0003", "Service Unavailable", "this process has no object store (OBJECT_STORAGE_*)"
        )


@dataclass(frozen=True, slots=True)
class JobResult:
    job: Job
    facts: ResultFacts
    objects: ObjectStore


@dataclass(frozen=True, slots=True)
class StoredResult(JobResult):
    stored_bytes: int
    """Size of the sealed text."""


async def result_of(jobs: JobRecords, objects: ObjectStore | None, job_id: JobId) -> JobResult:
    """What the record says of the result; the store is not asked.

    Raise ``FET-1001``, ``FET-1024`` where there is none or it was deleted, ``FET-0003`` without a
    store.
    """
    job = await get_job(jobs, job_id)
    if job.status is not JobStatus.COMPLETED or job.result is None:
        raise ResultMissing(f"the job has no result: it is {job.status}")
    if job.result_deleted_at is not None:
        raise ResultMissing("the result was deleted")
    if objects is None:
        raise NoObjectStore
    return JobResult(job, job.result, objects)


async def stored_result(
    jobs: JobRecords, objects: ObjectStore | None, job_id: JobId
) -> StoredResult:
    """As :func:`result_of`; also ``FET-1024`` where the store does not have the object."""
    found = await result_of(jobs, objects, job_id)
    size = await found.objects.size(found.facts.path)
    if size is None:
        raise ResultMissing(GONE)
    return StoredResult(found.job, found.facts, found.objects, size)
