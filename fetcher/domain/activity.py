"""What operators are told of jobs that have ended, in numbers."""

from dataclasses import dataclass
from datetime import datetime

from fetcher.domain.jobs import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedMinute:
    """The jobs that ended in one minute in one state."""

    minute: datetime
    """Its beginning."""
    status: JobStatus
    jobs: int
    timed: int
    """Of these, those that a worker had begun: a pending job may be cancelled."""
    total_seconds: float
    """From the first claim to the end, of the timed ones."""
    longest_seconds: float
