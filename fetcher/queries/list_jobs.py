"""Pages of jobs, newest first."""

from fetcher.domain.job_store import JobPage, JobQuery
from fetcher.ports import JobRecords


async def list_jobs(jobs: JobRecords, query: JobQuery) -> JobPage:
    """Sorted by ``created_at``, then id, so that pages neither repeat nor lose one."""
    return await jobs.list_page(query)
