"""Retention: what the record store gives up after its time."""

from typing import Protocol

from fetcher.domain.job_store import EndedCursor
from fetcher.domain.retention import KeptResult


class JobRetention(Protocol):
    """Jobs that ended longer ago than asked, by the store's clock, oldest first.

    Several processes at once do no harm: what one has dealt with, another does not find.
    """

    async def find_results(
        self, *, older_than_seconds: float, after: EndedCursor | None, limit: int
    ) -> list[KeptResult]:
        """Completed jobs whose result is not noted as deleted, strictly after the place."""
        ...

    async def delete_jobs(self, *, older_than_seconds: float, limit: int) -> int:
        """Delete records of ended jobs; how many.

        Never one whose event waits to be published, whose left objects wait to be deleted, or
        whose result is still stored: nothing else says where that lies.
        """
        ...
