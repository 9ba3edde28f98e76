"""Claims one job, runs it, records how it ended (design section 4, steps 4 to 6)."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog
import trio

from fetcher.actors.channels import Channel, Reply
from fetcher.actors.job_metrics import JobMetrics
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import (
    ExtractOrder,
    LeaseEnded,
    LeaseLoss,
    LeaseStarted,
    RelayHint,
    Settlement,
    StoreAway,
)
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.job_stages import JobStage
from fetcher.domain.job_store import Claimed, ClaimRefusal, FinishAnswer, Lease
from fetcher.domain.job_transitions import took_over
from fetcher.domain.jobs import Job, JobStatus, Parking, TerminalOutcome
from fetcher.ports import UNTRACED, JobLeases, SpanKind, Tracer

log = structlog.get_logger(__name__)

T = TypeVar("T")

STORE_SECONDS = 10.0
"""Deadline of one question to the record store."""
RELEASE_SECONDS = 5.0
"""Deadline of the way out of a job that is cut off."""

REJECTIONS = frozenset({Settlement.REJECT_UNKNOWN, Settlement.REJECT_UNREADABLE})


class JobRun(Protocol):
    """One attempt at one job: extraction, sealing, storing, and the objects it leaves."""

    async def run(self, job: Job, lease: Lease) -> TerminalOutcome | Parking:
        """The outcome to be written, completed or failed. Cancelled: nothing visible is left.

        Parking: no source was opened, and the job waits.
        """
        ...

    def cancelled(self, job: Job) -> TerminalOutcome: ...

    async def tidy(self, job: Job, *, keep_attempt: int | None) -> None:
        """Delete the objects of all attempts but the one to keep; never raises a PortError."""
        ...

    async def discard(self, job: Job, lease: Lease) -> None:
        """Delete the object of this attempt alone; never raises a PortError."""
        ...


class Extractor:
    """Takes orders one at a time; an order is always answered, a lease never just forgotten.

    Ends once jobs are released, after giving back its own.
    """

    def __init__(
        self,
        *,
        number: int,
        owner: str,
        leases: JobLeases,
        lease_seconds: float,
        hold_seconds: float,
        job_run: JobRun,
        orders: Channel[ExtractOrder],
        store_away: Channel[StoreAway],
        lease_commands: Channel[LeaseStarted | LeaseEnded],
        relay_hints: Channel[RelayHint],
        lifecycle: Lifecycle,
        metrics: JobMetrics,
        tracer: Tracer = UNTRACED,
    ) -> None:
        self.name = f"extractor-{number}"
        self._owner = owner
        self._leases = leases
        self._lease_seconds = lease_seconds
        self._hold_seconds = hold_seconds
        self._job_run = job_run
        self._orders = orders
        self._store_away = store_away
        self._lease_commands = lease_commands
        self._relay_hints = relay_hints
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._tracer = tracer
        self._claim_asked_at = 0.0

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        releasing = self._lifecycle.releasing
        while (order := await self._orders.receive_until(releasing)) is not None:
            with (
                order.reply.answering(),
                structlog.contextvars.bound_contextvars(
                    job_id=str(order.job_id), request_id=order.request_id
                ),
                self._tracer.span(
                    "rabbitmq.consumer.handle_message", kind=SpanKind.CONSUMER, parent=order.trace
                ) as span,
            ):
                settlement = await self._work(order)
                span.note("fetcher.settlement", settlement.value)
                if settlement in REJECTIONS:
                    span.fail(settlement.value)
                order.reply.set(settlement)

    async def _work(self, order: ExtractOrder) -> Settlement:
        asked_at = trio.current_time()
        try:
            with self._tracer.span("service.claim_job") as span:
                claim = await self._claim(order)
                if claim is None:
                    span.fail(PortUnavailable.code)
        except PortError as failure:
            # Not an outage: the record itself cannot be read, and no waiting mends that.
            log.error("job_unreadable", code=failure.code)
            return Settlement.REJECT_UNREADABLE
        if claim is None:
            return Settlement.REQUEUE
        if isinstance(claim, ClaimRefusal):
            log.info("job_not_claimed", why=claim.value)
            if claim is ClaimRefusal.UNKNOWN:
                return Settlement.REJECT_UNKNOWN
            return Settlement.ACK
        log.info("job_claimed", attempt=claim.lease.attempt)
        started_at = trio.current_time()
        self._metrics.stage_ended(JobStage.CLAIM, started_at - asked_at)
        self._observe_claim(claim.job)
        self._metrics.started()
        outcome = "released"
        try:
            settlement, outcome = await self._attempt(claim)
        finally:
            seconds = trio.current_time() - started_at
            self._metrics.ended(outcome, seconds)
        log.info("job_ended", outcome=outcome, seconds=round(seconds, 3))
        return settlement

    def _observe_claim(self, job: Job) -> None:
        if job.attempt == 1 and job.started_at is not None:
            waited = (job.started_at - job.created_at).total_seconds()
            self._metrics.stage_ended(JobStage.WAIT, waited)
        if took_over(job):
            self._metrics.took_over("claimed")

    async def _claim(self, order: ExtractOrder) -> Claimed | ClaimRefusal | None:
        """Hold the delivery while the record store is away; None once it was held long enough.

        All tries are one claim, under one token: one that took effect without an answer would
        otherwise keep the job from us, and from everybody, until its lease runs out.
        """
        token = secrets.token_bytes(16)

        async def claim() -> Claimed | ClaimRefusal:
            self._claim_asked_at = trio.current_time()
            return await self._leases.claim(
                order.job_id, owner=self._owner, lease_seconds=self._lease_seconds, token=token
            )

        return await self._asked_until_answered(
            claim,
            within_seconds=self._hold_seconds,
            is_away=lambda: self._store_away.offer(StoreAway()),
        )

    async def _attempt(self, claim: Claimed) -> tuple[Settlement, str]:
        """Run the job under its lease; stop it when the lease is lost or the process gives up."""
        started = LeaseStarted(lease=claim.lease, asked_at=self._claim_asked_at)
        await self._lease_commands.send(started)
        stopped: list[LeaseLoss | None] = []
        outcomes: list[TerminalOutcome | Parking] = []
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._stop_on_loss, started.lost, stopped, nursery.cancel_scope)
                nursery.start_soon(self._stop_on_release, stopped, nursery.cancel_scope)
                outcomes.append(await self._job_run.run(claim.job, claim.lease))
                nursery.cancel_scope.cancel()
            # Outside of the nursery: once there is an outcome, only the record decides about it.
            if outcomes:
                return await self._end(claim, outcomes[0])
            return await self._cut_off(claim, stopped[0])
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(RELEASE_SECONDS):
                await self._lease_commands.send(LeaseEnded(lease=claim.lease))

    async def _stop_on_loss(
        self, lost: Reply[LeaseLoss], stopped: list[LeaseLoss | None], scope: trio.CancelScope
    ) -> None:
        stopped.append(await lost.get())
        scope.cancel()

    async def _stop_on_release(
        self, stopped: list[LeaseLoss | None], scope: trio.CancelScope
    ) -> None:
        await self._lifecycle.releasing.wait()
        stopped.append(None)
        scope.cancel()

    async def _end(
        self, claim: Claimed, ended: TerminalOutcome | Parking
    ) -> tuple[Settlement, str]:
        started_at = trio.current_time()
        try:
            with self._tracer.span("service.settle_job") as span:
                if isinstance(ended, Parking):
                    settled = await self._park(claim, ended)
                else:
                    settled = await self._finish(claim, ended)
                span.note("fetcher.job.outcome", settled[1])
                if settled[1] == "unrecorded":
                    span.fail(settled[1])
                return settled
        finally:
            self._metrics.stage_ended(JobStage.SETTLE, trio.current_time() - started_at)

    async def _park(self, claim: Claimed, parking: Parking) -> tuple[Settlement, str]:
        """The record brings the job again when it is due: its delivery has done its work."""

        async def park() -> bool:
            return await self._leases.park(claim.lease, until=parking.until, reason=parking.reason)

        try:
            parked = await self._asked_until_answered(park, within_seconds=self._lease_seconds)
        except PortError as failure:
            log.error("wait_not_storable", code=failure.code)
            parked = None
        if parked is None:
            return Settlement.REQUEUE, "unrecorded"
        if not parked:
            return Settlement.ACK, "superseded"
        log.info("job_parked", why=parking.reason)
        return Settlement.ACK, "parked"

    async def _finish(self, claim: Claimed, outcome: TerminalOutcome) -> tuple[Settlement, str]:
        async def finish() -> FinishAnswer:
            return await self._leases.finish(claim.lease, outcome)

        try:
            answer = await self._asked_until_answered(finish, within_seconds=self._lease_seconds)
        except PortError as failure:
            log.error("outcome_not_storable", code=failure.code)
            answer = None
        if answer is FinishAnswer.CANCEL_REQUESTED:
            return await self._finish(claim, self._job_run.cancelled(claim.job))
        if answer is FinishAnswer.WRITTEN:
            self._relay_hints.offer(RelayHint(claim.job.id))
            if outcome.failure is not None:
                self._metrics.failed(outcome.failure.code)
            keep = claim.lease.attempt if outcome.status is JobStatus.COMPLETED else None
            await self._job_run.tidy(claim.job, keep_attempt=keep)
            return Settlement.ACK, outcome.status.value
        if answer is FinishAnswer.SUPERSEDED:
            await self._job_run.discard(claim.job, claim.lease)
            return Settlement.ACK, "superseded"
        # Nothing is acknowledged that is not recorded, and nothing deleted that may be the winner.
        return Settlement.REQUEUE, "unrecorded"

    async def _cut_off(self, claim: Claimed, loss: LeaseLoss | None) -> tuple[Settlement, str]:
        """The attempt was stopped: say so in the record, as far as the record is still ours."""
        if loss is LeaseLoss.CANCEL_REQUESTED:
            return await self._finish(claim, self._job_run.cancelled(claim.job))
        if loss is LeaseLoss.SUPERSEDED:
            return Settlement.ACK, "superseded"
        if loss is LeaseLoss.UNRENEWED:
            return Settlement.REQUEUE, "lease_lost"

        async def release() -> bool:
            return await self._leases.release(claim.lease)

        with trio.CancelScope(shield=True):
            await self._asked_until_answered(release, within_seconds=RELEASE_SECONDS)
        return Settlement.REQUEUE, "released"

    async def _asked_until_answered(
        self,
        question: Callable[[], Awaitable[T]],
        *,
        within_seconds: float,
        is_away: Callable[[], object] = bool,
    ) -> T | None:
        """Ask the record store again while it is away; None when the time is over.

        ``is_away`` is told of each try without an answer but the first: that may be an accident.
        Raise what is no outage: it would be the same at the next try.
        """
        give_up_at = trio.current_time() + within_seconds
        tries = 0
        while trio.current_time() < give_up_at:
            try:
                with trio.fail_after(min(STORE_SECONDS, within_seconds)):
                    return await question()
            except (PortUnavailable, trio.TooSlowError) as failure:
                log.warning("record_store_failed", failure=type(failure).__name__, tries=tries)
            if tries > 0:
                is_away()
            await trio.sleep(full_jitter(tries, base_seconds=0.25, cap_seconds=10.0))
            tries += 1
        return None
