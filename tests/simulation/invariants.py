"""What holds at every step, and what holds once time has passed without faults."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fetcher.adapters.memory.state import JobEntry, MemoryState
from fetcher.crypto.opener import ResultOpener
from fetcher.domain.ids import JobId
from fetcher.domain.job_transitions import MAX_TAKEOVERS
from fetcher.domain.jobs import Job, JobStatus, ResultFacts
from fetcher.ports import OutgoingMessage
from tests.simulation.objects import Bucket, StoredObject
from tests.simulation.processes import EXTERNAL_KEY, STORAGE_KEY
from tests.simulation.sources import DOCUMENT


@dataclass(frozen=True, slots=True)
class _End:
    """What a job's terminal write left, which nothing changes afterwards."""

    job: Job
    winner: StoredObject | None


@dataclass
class Safety:
    """Looked at after every effect. The first violations are kept, with the job they concern."""

    state: MemoryState
    bucket: Bucket
    violations: list[str] = field(default_factory=list)
    _ends: dict[JobId, _End] = field(default_factory=dict)
    _attempts: dict[JobId, int] = field(default_factory=dict)

    def check(self) -> None:
        active: set[str] = set()
        for entry in self.state.jobs.values():
            job = entry.job
            if job.attempt < self._attempts.get(job.id, 0):
                self._violated(job, "its attempt number fell")
            self._attempts[job.id] = job.attempt
            if job.status.is_active:
                if job.request_hash in active:
                    self._violated(job, "a second active job of one request")
                active.add(job.request_hash)
            self._check_end(job)

    def check_acknowledged(self, job_id: JobId, held: Collection[JobId]) -> None:
        """A message may go only when the record brings the job on without it."""
        entry = self.state.jobs.get(job_id)
        if entry is None:
            self.violations.append(f"{job_id}: acknowledged, but there is no such job")
            return
        job = entry.job
        waits_for_a_message = job.status is JobStatus.PENDING and job.dispatched_at is not None
        if waits_for_a_message and job_id not in held:
            self._violated(job, "acknowledged, but nothing will dispatch it again")

    def _check_end(self, job: Job) -> None:
        end = self._ends.get(job.id)
        winner = self.bucket.objects.get(job.result.path) if job.result else None
        if end is None:
            if job.status.is_active:
                return
            end = self._ends[job.id] = _End(job, winner)
            if job.status is JobStatus.COMPLETED and winner is None:
                self._violated(job, "completed without its object")
        if _terminal_facts(job) != _terminal_facts(end.job):
            self._violated(job, f"ended twice: {_terminal_facts(end.job)}")
        if winner != end.winner:
            self._violated(job, "its winning object is gone or replaced")

    def _violated(self, job: Job, what: str) -> None:
        self.violations.append(f"{job.id} ({job.status}): {what}")


def _terminal_facts(job: Job) -> tuple[object, ...]:
    return job.status, job.completed_at, job.result, job.failure


def final_violations(
    entries: Sequence[JobEntry], bucket: Bucket, events: Sequence[OutgoingMessage]
) -> list[str]:
    """One terminal state, one visible object for it, at least one event, one ce-id."""
    return [
        f"{entry.job.id} ({entry.job.status}): {problem}"
        for entry in entries
        for problem in _problems_of(entry.job, bucket, _events_of(entry.job, events))
    ]


def _problems_of(job: Job, bucket: Bucket, events: Sequence[tuple[str, bytes]]) -> Sequence[str]:
    if job.status.is_active:
        return ["it has not ended"]
    problems = []
    visible = {key: stored for key, stored in bucket.objects.items() if str(job.id) in key}
    winners = {job.result.path} if job.result is not None else set()
    if set(visible) != winners:
        problems.append(f"visible are {sorted(visible)}, not {sorted(winners)}")
    elif job.result is not None and _opened(visible, job.result) != DOCUMENT % (
        next(iter(job.mapped_fields)).encode()
    ):
        problems.append("its result is not what the source has")
    word = "completed" if job.status is JobStatus.COMPLETED else "failed"
    if {ce_id for ce_id, _ in events} != {f"fetcher.job.{word}.{job.id}"}:
        problems.append(f"its events are {events}")
    if len({body for _, body in events}) > 1:
        problems.append("its events differ")
    if job.takeovers > MAX_TAKEOVERS:
        problems.append(f"it was taken over {job.takeovers} times")
    return problems


def _opened(visible: Mapping[str, StoredObject], result: ResultFacts) -> bytes:
    opener = ResultOpener(
        storage_key=STORAGE_KEY,
        hmac_key=EXTERNAL_KEY,
        expected_hmac=result.hmac,
        expected_size=result.size_bytes,
    )
    opener.feed(visible[result.path].content)
    with opener.finish() as opened:
        return opened.read()


def _events_of(job: Job, events: Sequence[OutgoingMessage]) -> list[tuple[str, bytes]]:
    found = []
    for event in events:
        raw = event.headers["ce-id"]
        ce_id = raw.decode() if isinstance(raw, bytes | bytearray) else str(raw)
        if ce_id.endswith(str(job.id)):
            found.append((ce_id, event.body))
    return found
