"""No connection is changed or deleted under a job (spec rest-api 8.6, 10)."""

from fetcher.domain.errors import FetcherError
from fetcher.ports import JobRecords


async def refuse_in_use(jobs: JobRecords, config_name: str) -> None:
    """Raise ``FET-1021`` where a pending or processing job reads from the connection."""
    if await jobs.is_in_use(config_name):
        raise FetcherError(
            "FET-1021",
            "Job In Progress",
            f"a job that has not ended reads from the connection {config_name}",
        )
