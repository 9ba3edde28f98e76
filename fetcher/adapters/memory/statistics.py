"""Numbers over the jobs in memory."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import trio

from fetcher.adapters.memory.state import MemoryState
from fetcher.domain.activity import EndedMinute
from fetcher.domain.job_store import MOST_COUNTED
from fetcher.domain.jobs import Job, JobStatus


class MemoryStatistics:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def count_by_status(self) -> Mapping[JobStatus, int]:
        await trio.lowlevel.checkpoint()
        found = Counter(entry.job.status for entry in self._state.jobs.values())
        return {status: min(found[status], MOST_COUNTED) for status in JobStatus}

    async def ended_by_minute(self, *, since: datetime) -> Sequence[EndedMinute]:
        await trio.lowlevel.checkpoint()
        groups: defaultdict[tuple[datetime, JobStatus], list[Job]] = defaultdict(list)
        for entry in self._state.jobs.values():
            ended_at = entry.job.completed_at
            if ended_at is not None and ended_at >= since:
                minute = ended_at.replace(second=0, microsecond=0)
                groups[minute, entry.job.status].append(entry.job)
        return [
            _ended_minute(minute, status, groups[minute, status])
            for minute, status in sorted(groups)
        ]


def _ended_minute(minute: datetime, status: JobStatus, jobs: Sequence[Job]) -> EndedMinute:
    seconds = [
        max(0.0, (job.completed_at - job.started_at).total_seconds())
        for job in jobs
        if job.completed_at is not None and job.started_at is not None
    ]
    return EndedMinute(
        minute=minute,
        status=status,
        jobs=len(jobs),
        timed=len(seconds),
        total_seconds=sum(seconds),
        longest_seconds=max(seconds, default=0.0),
    )
