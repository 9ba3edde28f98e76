"""Reading jobs out of the collection."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from fetcher.adapters.mongo.document_fields import Document, id_filter, id_forms
from fetcher.adapters.mongo.job_documents import read_job
from fetcher.adapters.mongo.readable import readable
from fetcher.adapters.mongo.server import Collection
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job


async def find_job(jobs: Collection, job_id: JobId) -> Job | None:
    document = await jobs.find_one(id_filter(job_id))
    return None if document is None else read_job(document)


async def find_jobs(jobs: Collection, job_ids: Iterable[JobId]) -> dict[JobId, Job | None]:
    """Those that there are, by one look; None for what cannot be read, which is reported."""
    found: dict[JobId, Job | None] = {}
    async for document in jobs.find({"_id": {"$in": id_forms(job_ids)}}):
        found[JobId(UUID(bytes=bytes(document["_id"])))] = readable(document, read_job)
    return found


def sorted_out(documents: Sequence[Document]) -> tuple[list[Job], list[object]]:
    """For sweeps: the jobs, and the ids of what cannot be read. That is reported and must not stop
    the others: a sweep puts it aside for a while, and looks on."""
    jobs: list[Job] = []
    unreadable: list[object] = []
    for document in documents:
        job = readable(document, read_job)
        if job is not None:
            jobs.append(job)
        else:
            unreadable.append(document["_id"])
    return jobs, unreadable
