"""What holds at every step, and what holds once time has passed without faults."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from fetcher.adapters.memory.state import JobEntry, MemoryState
from fetcher.crypto.opener import ResultOpener
from fetcher.domain.ids import JobId
from fetcher.domain.job_transitions import MAX_TAKEOVERS
from fetcher.domain.jobs import Job, JobStatus, ResultFacts
from fetcher.ports import OutgoingMessage
from tests.simulation.expiry import Expiry
from tests.simulation.objects import Bucket, StoredObject
from tests.simulation.processes import EXTERNAL_KEY, STORAGE_KEY
from tests.simulation.roles import MAX_WAIT_SECONDS
from tests.simulation.sources import DOCUMENT, Outages


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
    outages: Outages
    expiry: Expiry | None = None
    """None where nothing may ever be deleted."""
    violations: list[str] = field(default_factory=list)
    _ends: dict[JobId, _End] = field(default_factory=dict)
    parked: int = 0
    _before: dict[JobId, Job] = field(default_factory=dict)
    _entries: dict[JobId, JobEntry] = field(default_factory=dict)
    """Those that are there, as of the last look."""

    def check(self) -> None:
        self._check_breakers()
        active: set[str] = set()
        for entry in self.state.jobs.values():
            job = entry.job
            before = self._before.get(job.id, job)
            if job is not before:
                self._check_change(before, job)
            self._before[job.id] = job
            self._entries[job.id] = entry
            if job.status.is_active:
                if job.request_hash in active:
                    self._violated(job, "a second active job of one request")
                active.add(job.request_hash)
            self._check_end(job)
        self._check_gone()

    @property
    def jobs(self) -> Sequence[Job]:
        """All that there ever were, each as it was last seen."""
        return list(self._before.values())

    def check_acknowledged(self, job_id: JobId, held: Collection[JobId]) -> None:
        """A message may go only when the record brings the job on without it."""
        entry = self.state.jobs.get(job_id)
        if entry is None and job_id in self._ends:
            return  # it had its end, and its time
        if entry is None:
            self.violations.append(f"{job_id}: acknowledged, but there is no such job")
            return
        job = entry.job
        waits_for_a_message = job.status is JobStatus.PENDING and job.dispatched_at is not None
        if waits_for_a_message and job_id not in held:
            self._violated(job, "acknowledged, but nothing will dispatch it again")

    def _check_change(self, before: Job, job: Job) -> None:
        if job.attempt < before.attempt:
            self._violated(job, "its attempt number fell")
        if job.status is JobStatus.PENDING and job.lease_token is not None:
            self._violated(job, "pending, and leased")
        if job.status is JobStatus.PROCESSING and job.waiting_reason is not None:
            self._violated(job, "worked on, and waiting")
        if job.is_parked and before.status is JobStatus.PROCESSING:
            self.parked += 1
            self._check_parking(before, job)
        if job.failure is not None and job.failure.code == "connection_down":
            self._check_given_up(job)

    def _check_parking(self, before: Job, job: Job) -> None:
        """One write: it waits with a reason, for a time, and will be dispatched anew."""
        [name] = job.mapped_fields
        if name not in self.outages.ever or job.waiting_reason != f"connection {name} is down":
            self._violated(job, f"waits, {job.waiting_reason}: {name} never was")
        if job.takeovers != before.takeovers:
            self._violated(job, "its waiting counts as a takeover")
        if job.dispatched_at is not None or job.dispatch_seq <= before.dispatch_seq:
            self._violated(job, "waits, and will not be dispatched again")
        longest = timedelta(seconds=MAX_WAIT_SECONDS)
        if job.due_at is None or job.started_at is None or job.due_at > job.started_at + longest:
            self._violated(job, f"waits until {job.due_at}, since {job.started_at}")

    def _check_given_up(self, job: Job) -> None:
        [name] = job.mapped_fields
        if name not in self.outages.ever:
            self._violated(job, f"given up for a connection that was well: {name}")
        if not self.outages.is_exact or job.completed_at is None or job.started_at is None:
            return
        if (job.completed_at - job.started_at).total_seconds() < MAX_WAIT_SECONDS:
            self._violated(job, "given up before its time")

    def _check_breakers(self) -> None:
        for connection in self.state.connections.values():
            breaker = self.state.breakers.get(connection.id)
            is_open = breaker is not None and breaker.holds_back(connection)
            self.outages.note_breaker(connection.config_name, is_open=is_open)

    def _check_end(self, job: Job) -> None:
        end = self._ends.get(job.id)
        winner = self.bucket.objects.get(job.result.path) if job.result else None
        if end is None:
            if job.status.is_active:
                return
            end = self._ends[job.id] = _End(job, winner)
            if job.status is JobStatus.COMPLETED and winner is None:
                self._violated(job, "completed without its object")
            elif winner is not None and job.result is not None:
                self._check_content(job, job.result, winner)
        if _terminal_facts(job) != _terminal_facts(end.job):
            self._violated(job, f"ended twice: {_terminal_facts(end.job)}")
        if winner != end.winner:
            self._check_loss(job, winner)

    def _check_content(self, job: Job, result: ResultFacts, winner: StoredObject) -> None:
        if _opened(winner, result) != DOCUMENT % (next(iter(job.mapped_fields)).encode()):
            self._violated(job, "its result is not what the source has")

    def _check_loss(self, job: Job, winner: StoredObject | None) -> None:
        problem: str | None = "its winning object is gone or replaced"
        if winner is None and self.expiry is not None:
            problem = self.expiry.missing_result(job)
        if problem is not None:
            self._violated(job, problem)

    def _check_gone(self) -> None:
        for job_id in [each for each in self._entries if each not in self.state.jobs]:
            entry = self._entries.pop(job_id)
            problems = ["deleted"] if self.expiry is None else self.expiry.missing_job(entry)
            for problem in problems:
                self._violated(entry.job, problem)

    def _violated(self, job: Job, what: str) -> None:
        self.violations.append(f"{job.id} ({job.status}): {what}")


def _terminal_facts(job: Job) -> tuple[object, ...]:
    return job.status, job.completed_at, job.result, job.failure


def final_violations(
    safety: Safety, bucket: Bucket, events: Sequence[OutgoingMessage]
) -> list[str]:
    """One terminal state, one visible object for it unless that has had its time, at least one
    event, one ce-id."""
    return [
        f"{job.id} ({job.status}): {problem}"
        for job in safety.jobs
        for problem in _problems_of(job, bucket, _events_of(job, events), safety.expiry)
    ]


def _problems_of(
    job: Job, bucket: Bucket, events: Sequence[tuple[str, bytes]], expiry: Expiry | None
) -> Sequence[str]:
    if job.status.is_active:
        return ["it has not ended"]
    problems = []
    visible = {key for key in bucket.objects if str(job.id) in key}
    is_kept = job.result is not None and (expiry is None or expiry.is_kept_back(job))
    winners = {job.result.path} if is_kept and job.result is not None else set()
    if visible != winners:
        problems.append(f"visible are {sorted(visible)}, not {sorted(winners)}")
    word = "completed" if job.status is JobStatus.COMPLETED else "failed"
    if {ce_id for ce_id, _ in events} != {f"fetcher.job.{word}.{job.id}"}:
        problems.append(f"its events are {events}")
    if len({body for _, body in events}) > 1:
        problems.append("its events differ")
    if job.takeovers > MAX_TAKEOVERS:
        problems.append(f"it was taken over {job.takeovers} times")
    return problems


def _opened(stored: StoredObject, result: ResultFacts) -> bytes:
    opener = ResultOpener(
        storage_key=STORAGE_KEY,
        hmac_key=EXTERNAL_KEY,
        expected_hmac=result.hmac,
        expected_size=result.size_bytes,
    )
    opener.feed(stored.content)
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
