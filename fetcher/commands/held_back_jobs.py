"""Which jobs would only run into a connection that is being left alone (decision 032)."""

from collections.abc import Sequence

from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.ports import ConnectionBreakers, JobRecords, UtcNow


class HeldBackJobs:
    """A breaker whose wait is over holds nothing back: the next job is its probe."""

    def __init__(
        self,
        *,
        jobs: JobRecords,
        breakers: ConnectionBreakers,
        resolve: ResolveSources,
        now: UtcNow,
    ) -> None:
        self._jobs = jobs
        self._breakers = breakers
        self._resolve = resolve
        self._now = now

    async def among(self, job_ids: Sequence[JobId]) -> frozenset[JobId]:
        """Raises PortUnavailable. One query where no breaker is open."""
        if await self._breakers.count_open() == 0:
            return frozenset()
        return frozenset([job_id for job_id in job_ids if await self._is_held_back(job_id)])

    async def _is_held_back(self, job_id: JobId) -> bool:
        try:
            job: Job | None = await self._jobs.get(job_id)
        except RecordCorrupt:
            return False
        if job is None or not job.status.is_active:
            return False
        connections = await self._resolve.configured(list(job.mapped_fields))
        known = await self._breakers.find([connection.id for connection in connections])
        now = self._now()
        for connection in connections:
            breaker = known.get(connection.id)
            if breaker is None or breaker.retry_at is None:
                continue
            if breaker.holds_back(connection) and breaker.retry_at > now:
                return True
        return False
