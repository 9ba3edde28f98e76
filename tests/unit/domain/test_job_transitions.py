"""Whatever happens in whatever order, a job's record stays one that design section 4 allows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fetcher.domain import job_transitions as transitions
from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import ClaimRefusal, FinishAnswer, Lease
from fetcher.domain.jobs import (
    EventMark,
    FailureFacts,
    Job,
    JobStatus,
    ResultFacts,
    TerminalOutcome,
)

START = datetime(2026, 3, 14, tzinfo=UTC)
MARK = EventMark(status="failed", payload="{}", time=START)
OUTCOMES = {
    JobStatus.COMPLETED: TerminalOutcome(
        status=JobStatus.COMPLETED,
        event=MARK,
        result=ResultFacts(path="p", hmac="h", size_bytes=1, row_count=1, key_version="1"),
    ),
    JobStatus.FAILED: TerminalOutcome(
        status=JobStatus.FAILED, event=MARK, failure=FailureFacts(message="m", code="connect")
    ),
    JobStatus.CANCELLED: TerminalOutcome(
        status=JobStatus.CANCELLED, event=MARK, failure=FailureFacts(message="m", code="cancelled")
    ),
}
outcomes = st.sampled_from(sorted(OUTCOMES.values(), key=lambda outcome: outcome.status))


class JobLife(RuleBasedStateMachine):
    """Several owners, some of them late, and a reaper that acts on what it saw before."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.job = Job(
            id=new_job_id(),
            status=JobStatus.PENDING,
            created_at=START,
            mapped_fields={},
            request_hash="h",
        )
        self.leases: list[Lease] = []
        self.seen = self.job
        self.written_by: Lease | None = None

    def put(self, job: Job) -> None:
        """What must hold of every change, whichever it was."""
        before = self.job
        assert before.status.is_active, "an ended job never changes"
        assert job.attempt >= before.attempt
        assert job.takeovers >= before.takeovers
        assert job.dispatch_seq >= before.dispatch_seq
        if before.cancel_requested is not None and not job.status.is_active:
            assert job.status is JobStatus.CANCELLED
        self.job = job

    @rule(seconds=st.integers(1, 90))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def claim(self) -> None:
        token = len(self.leases).to_bytes(16, "big")
        claimed = transitions.claimed(
            self.job,
            owner="w",
            token=token,
            now=self.now,
            lease_until=self.now + timedelta(seconds=60),
        )
        if isinstance(claimed, ClaimRefusal):
            return
        assert self.job.cancel_requested is None
        assert self.job.status is JobStatus.PENDING or transitions.lease_ran_out(self.job, self.now)
        assert claimed.attempt == self.job.attempt + 1
        assert claimed.started_at is not None
        self.put(claimed)
        self.leases.append(Lease(job_id=self.job.id, token=token, attempt=claimed.attempt))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), outcome=outcomes)
    def finish(self, data: st.DataObject, outcome: TerminalOutcome) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        answer = transitions.judge_finish(self.job, lease, outcome)
        if answer is None:
            assert lease == self.leases[-1]
            self.put(transitions.ended(self.job, outcome, completed_at=self.now))
            self.written_by = lease
        elif answer is FinishAnswer.WRITTEN:
            assert self.written_by == lease
        elif answer is FinishAnswer.CANCEL_REQUESTED:
            assert outcome.status is not JobStatus.CANCELLED

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        if transitions.holds(self.job, lease.token):
            assert lease == self.leases[-1]
            takeovers = self.job.takeovers
            self.put(transitions.released(self.job, self.now))
            assert self.job.takeovers == takeovers

    @precondition(lambda self: self.job.status is JobStatus.PROCESSING)
    @rule()
    def ask_to_stop(self) -> None:
        self.put(replace(self.job, cancel_requested=self.now))

    @rule()
    def reaper_looks(self) -> None:
        self.seen = self.job

    @rule()
    def reaper_requeues(self) -> None:
        if transitions.may_requeue(self.job, self.seen, self.now):
            self.put(transitions.requeued(self.job, self.now))

    @rule(outcome=outcomes)
    def reaper_ends(self, outcome: TerminalOutcome) -> None:
        if transitions.may_end_expired(self.job, self.seen, outcome, self.now):
            self.put(transitions.ended_without_owner(self.job, outcome, completed_at=self.now))

    @invariant()
    def pending_belongs_to_nobody_and_was_not_asked_to_stop(self) -> None:
        if self.job.status is JobStatus.PENDING:
            assert self.job.lease_token is None
            assert self.job.lease_until is None
            assert self.job.lease_owner is None
            assert self.job.dispatched_at is None
            assert self.job.cancel_requested is None
            assert self.job.due_at is None or self.job.due_at <= self.now

    @invariant()
    def processing_has_an_owner_whose_attempt_runs(self) -> None:
        if self.job.status is JobStatus.PROCESSING:
            assert self.job.lease_token == self.leases[-1].token
            assert self.job.lease_until is not None
            assert self.job.attempts[-1].ended_at is None

    @invariant()
    def ended_has_a_time_an_event_and_one_kind_of_facts(self) -> None:
        ended = not self.job.status.is_active
        assert (self.job.completed_at is not None) == ended
        assert self.job.event_pending == ended
        if ended:
            completed = self.job.status is JobStatus.COMPLETED
            assert (self.job.result is not None) == completed
            assert (self.job.failure is None) == completed

    @invariant()
    def history_is_bounded_and_one_attempt_runs_at_most(self) -> None:
        numbers = [attempt.attempt for attempt in self.job.attempts]
        first = max(1, self.job.attempt - transitions.MAX_ATTEMPTS_KEPT + 1)
        assert numbers == list(range(first, self.job.attempt + 1))
        assert all(attempt.ended_at is not None for attempt in self.job.attempts[:-1])


JobLife.TestCase.settings = settings(stateful_step_count=60)
test_any_life_of_a_job_keeps_its_rules = JobLife.TestCase
