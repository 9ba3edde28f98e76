"""Which jobs a list shows, and their order, in memory."""

from datetime import datetime

from fetcher.domain.ids import JobId
from fetcher.domain.job_store import JobCursor, JobQuery
from fetcher.domain.jobs import Job


def place_of(job: Job) -> tuple[datetime, JobId]:
    return job.created_at, job.id


def cursor_of(job: Job) -> JobCursor:
    return JobCursor(created_at=job.created_at, job_id=job.id)


def matches(job: Job, query: JobQuery) -> bool:
    product = query.product_name
    return (
        (not query.statuses or job.status in query.statuses)
        and (product is None or job.product_name == product.strip().lower())
        and (query.config_name is None or query.config_name in job.mapped_fields)
        and (query.created_from is None or job.created_at >= query.created_from)
        and (query.created_until is None or job.created_at < query.created_until)
        and (query.after is None or _is_behind(job, query.after, ascending=query.ascending))
    )


def _is_behind(job: Job, cursor: JobCursor, *, ascending: bool) -> bool:
    place, start = place_of(job), (cursor.created_at, cursor.job_id)
    return place > start if ascending else place < start
