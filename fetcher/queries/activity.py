"""The last hour's jobs, minute by minute, for charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fetcher.domain.activity import EndedMinute
from fetcher.domain.jobs import JobStatus
from fetcher.ports import JobStatistics

MINUTES: Final = 60
TERMINAL: Final = tuple(status for status in JobStatus if not status.is_active)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityMinute:
    """Seconds are None where no job that a worker had begun has ended."""

    minute: datetime
    jobs: Mapping[JobStatus, int]
    average_seconds: float | None
    longest_seconds: float | None


async def last_hour(statistics: JobStatistics, now: datetime) -> Sequence[ActivityMinute]:
    """Sixty minutes, the one that goes on last, also where nothing ended. Raise PortUnavailable."""
    last = now.replace(second=0, microsecond=0)
    minutes = [last - timedelta(minutes=back) for back in reversed(range(MINUTES))]
    found = await statistics.ended_by_minute(since=minutes[0])
    by_minute: dict[datetime, list[EndedMinute]] = {}
    for each in found:
        by_minute.setdefault(each.minute, []).append(each)
    return [_activity(minute, by_minute.get(minute, [])) for minute in minutes]


def _activity(minute: datetime, parts: Sequence[EndedMinute]) -> ActivityMinute:
    timed = sum(part.timed for part in parts)
    total = sum(part.total_seconds for part in parts)
    jobs = dict.fromkeys(TERMINAL, 0) | {part.status: part.jobs for part in parts}
    return ActivityMinute(
        minute=minute,
        jobs=jobs,
        average_seconds=round(total / timed, 3) if timed else None,
        longest_seconds=max(part.longest_seconds for part in parts) if timed else None,
    )
