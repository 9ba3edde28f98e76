"""What has had its time, in memory."""

from datetime import datetime

import trio

from fetcher.adapters.memory.state import JobEntry, MemoryState
from fetcher.adapters.memory.state import after as later
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import Job, JobStatus
from fetcher.domain.retention import KeptResult


class MemoryRetention:
    """Implements :class:`fetcher.ports.JobRetention`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def find_results(
        self, *, older_than_seconds: float, after: EndedCursor | None, limit: int
    ) -> list[KeptResult]:
        await trio.lowlevel.checkpoint()
        place = (after.completed_at, after.job_id) if after is not None else None
        found = [
            KeptResult(
                place=EndedCursor(completed_at=completed_at, job_id=job_id),
                path=entry.job.result.path,
            )
            for completed_at, job_id, entry in self._ended(older_than_seconds)
            if (place is None or (completed_at, job_id) > place)
            and _has_kept_result(entry.job)
            and entry.job.result is not None
        ]
        return found[:limit]

    async def delete_jobs(self, *, older_than_seconds: float, limit: int) -> int:
        await trio.lowlevel.checkpoint()
        old = [
            job_id
            for _, job_id, entry in self._ended(older_than_seconds)
            if entry.event is None and entry.cleanup_due is None and not _has_kept_result(entry.job)
        ][:limit]
        for job_id in old:
            del self._state.jobs[job_id]
        return len(old)

    def _ended(self, older_than_seconds: float) -> list[tuple[datetime, JobId, JobEntry]]:
        """Oldest first."""
        until = later(self._state.now(), -older_than_seconds)
        return sorted(
            (
                (entry.job.completed_at, job_id, entry)
                for job_id, entry in self._state.jobs.items()
                if not entry.job.status.is_active
                and entry.job.completed_at is not None
                and entry.job.completed_at < until
            ),
            key=lambda found: found[:2],
        )


def _has_kept_result(job: Job) -> bool:
    return (
        job.status is JobStatus.COMPLETED
        and job.result is not None
        and job.result_deleted_at is None
    )
