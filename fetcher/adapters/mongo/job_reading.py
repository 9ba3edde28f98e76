"""Reading jobs out of the collection."""

from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.job_documents import read_job
from fetcher.adapters.mongo.readable import readable
from fetcher.adapters.mongo.server import Collection
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job


async def find_job(jobs: Collection, job_id: JobId) -> Job | None:
    document = await jobs.find_one(id_filter(job_id))
    return None if document is None else read_job(document)


def readable_job(document: Document) -> Job | None:
    """For sweeps: a record that cannot be read is reported and must not stop the others."""
    return readable(document, read_job)
