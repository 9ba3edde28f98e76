"""Reading jobs out of the collection."""

from collections.abc import AsyncIterator

import structlog

from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.job_documents import read_job
from fetcher.adapters.mongo.server import Collection
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job

log = structlog.get_logger(__name__)


async def find_job(jobs: Collection, job_id: JobId) -> Job | None:
    document = await jobs.find_one(id_filter(job_id))
    return None if document is None else read_job(document)


async def readable_jobs(documents: AsyncIterator[Document]) -> list[Job]:
    """For sweeps: a record that cannot be read is reported and must not stop the others."""
    jobs = []
    async for document in documents:
        job = readable_job(document)
        if job is not None:
            jobs.append(job)
    return jobs


def readable_job(document: Document) -> Job | None:
    try:
        return read_job(document)
    except RecordCorrupt as corrupt:
        record_id = document.get("_id")
        shown = record_id.hex() if isinstance(record_id, bytes) else type(record_id).__name__
        log.error("record_corrupt", what=str(corrupt), record_id=shown)
        return None
