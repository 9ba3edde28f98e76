"""Where a job's result lies, if it has one (decisions, "Result over HTTP")."""

from dataclasses import dataclass

from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, ResultFacts
from fetcher.domain.stored_results import NoObjectStore, ResultGone, stored_facts
from fetcher.ports import JobRecords, ObjectStore
from fetcher.queries.get_job import get_job


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
    facts = stored_facts(job)
    if objects is None:
        raise NoObjectStore
    return JobResult(job, facts, objects)


async def stored_result(
    jobs: JobRecords, objects: ObjectStore | None, job_id: JobId
) -> StoredResult:
    """As :func:`result_of`; also ``FET-1024`` where the store does not have the object."""
    found = await result_of(jobs, objects, job_id)
    size = await found.objects.size(found.facts.path)
    if size is None:
        raise ResultGone
    return StoredResult(found.job, found.facts, found.objects, size)
