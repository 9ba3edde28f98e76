"""What retention may delete and when, and that nothing keeps it from that for ever."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from fetcher.adapters.memory.state import JobEntry
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, JobStatus
from fetcher.domain.retention import DAY_SECONDS, RetentionTimes
from tests.simulation.objects import Bucket

RESULT_SECONDS: Final = 150.0
JOB_SECONDS: Final = 900.0
"""Longer than a process that was cut off, or a clock that jumped, can be late with its object: in
days that needs no thought."""
SWEEP_SECONDS: Final = 20.0
LONGEST_JUMP_SECONDS: Final = 70.0
TIMES: Final = RetentionTimes(
    result_days=RESULT_SECONDS / DAY_SECONDS, job_days=JOB_SECONDS / DAY_SECONDS
)


@dataclass
class Expiry:
    """``latest`` is the latest that the store's clock has ever shown: by what it showed once, a
    result was due, whatever it was turned back to afterwards."""

    bucket: Bucket
    latest: datetime
    asked: set[JobId] = field(default_factory=set)
    """Jobs whose results somebody has asked to delete, which may be at any time."""
    results_gone: set[JobId] = field(default_factory=set)
    jobs_gone: int = 0

    def look(self, now: datetime) -> None:
        self.latest = max(self.latest, now)

    def missing_result(self, job: Job) -> str | None:
        """What is wrong with the winning object's not being there any more."""
        self.results_gone.add(job.id)
        if job.id in self.asked or self._is_over(job, RESULT_SECONDS):
            return None
        return "its result was deleted before its time"

    def missing_job(self, entry: JobEntry) -> Sequence[str]:
        """What is wrong with the record's not being there any more, by what it last was."""
        self.jobs_gone += 1
        job = entry.job
        problems = []
        if job.status.is_active:
            problems.append("deleted while it was active")
        elif not self._is_over(job, JOB_SECONDS):
            problems.append("deleted before its time")
        if entry.event is not None:
            problems.append("deleted with its event unpublished")
        if entry.left_keys:
            problems.append(f"deleted with objects left: {entry.left_keys}")
        if job.result is not None and job.result.path in self.bucket.objects:
            problems.append("deleted, and its result is still there")
        return problems

    def is_done(self, entries: Iterable[JobEntry]) -> bool:
        """All have gone but those whose result cannot be deleted."""
        return all(self.is_kept_back(entry.job) for entry in entries)

    def is_kept_back(self, job: Job) -> bool:
        return (
            job.status is JobStatus.COMPLETED
            and job.result is not None
            and job.result.path in self.bucket.locked
        )

    def _is_over(self, job: Job, seconds: float) -> bool:
        ended = job.completed_at
        return ended is not None and ended + timedelta(seconds=seconds) <= self.latest
