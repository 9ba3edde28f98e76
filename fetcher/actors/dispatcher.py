"""Publishes pending jobs to the work queue (design section 4, step 2)."""

import math
from collections.abc import Sequence
from typing import Protocol

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import DispatchHint, HeldJob
from fetcher.actors.metrics import ActorMetrics
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortError, PortUnavailable, QueueFull, Unroutable
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.ports import DispatchOutbox, WorkBacklog

log = structlog.get_logger(__name__)

BATCH = 50
DISPATCH_LEASE_SECONDS = 15.0
SENDING_SECONDS = DISPATCH_LEASE_SECONDS / 2
"""So long one batch may take: whoever sent on without a lease would send what others send too."""
GATHER_SECONDS = 0.05
"""From one hinted round to the next: a round costs the store as much for one job as for many."""
SWEEP_SECONDS = 5.0
STALE_CHECK_SECONDS = 30.0
STALE_SECONDS = 600.0
"""A dispatched job that nobody claimed in this time may have lost its message."""


class WorkSender(Protocol):
    async def send(self, job: Job) -> None:
        """Sign and publish one job's work message; raises what a publisher raises."""


class Dispatcher:
    """The sweep is the truth and hints only shorten the wait: a broker outage delays jobs.

    The first sweep is after ``first_after_seconds``, hints are heard at once.
    """

    name = "dispatcher"

    def __init__(
        self,
        *,
        outbox: DispatchOutbox,
        sender: WorkSender,
        backlog: WorkBacklog,
        hints: Channel[DispatchHint],
        metrics: ActorMetrics,
        sweep_seconds: float = SWEEP_SECONDS,
        stale_check_seconds: float = STALE_CHECK_SECONDS,
        first_after_seconds: float = 0.0,
    ) -> None:
        self._outbox = outbox
        self._sender = sender
        self._backlog = backlog
        self._hints = hints
        self._metrics = metrics
        self._sweep_seconds = sweep_seconds
        self._stale_check_seconds = stale_check_seconds
        self._first_after_seconds = first_after_seconds
        self._failures = 0
        self._put_off: list[HeldJob] = []
        """Told of while something failed. Nobody else may send them before their lease ends."""
        self._stale_check_at = -math.inf

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        next_round = trio.current_time()
        next_sweep = next_round + self._first_after_seconds
        while True:
            hinted: list[DispatchHint] = []
            with trio.move_on_at(next_sweep):
                await trio.sleep_until(next_round)
                hinted = [await self._hints.receive()]
                hinted += self._hints.receive_waiting(limit=BATCH - 1)
            held = [hint.held for hint in hinted if hint.held is not None]
            if self._failures:
                self._put_off = [*self._put_off, *held][-BATCH:]
            elif hinted:
                next_round = trio.current_time() + GATHER_SECONDS
                await self._publish(held)
                named = [hint.job_id for hint in hinted if hint.held is None]
                if named and self._failures == 0:
                    await self._round(named)
            if trio.current_time() >= next_sweep:
                await self._sweep()
                if self._put_off and self._failures == 0:
                    put_off, self._put_off = self._put_off, []
                    await self._publish(put_off)
                next_sweep = trio.current_time() + self._sweep_seconds

    async def _sweep(self) -> None:
        while await self._round(None) == BATCH:
            pass
        if self._failures:
            await trio.sleep(full_jitter(self._failures, base_seconds=0.5, cap_seconds=30.0))
            return
        if trio.current_time() < self._stale_check_at:
            return
        self._stale_check_at = trio.current_time() + self._stale_check_seconds
        try:
            await self._rescue_stale()
        except PortError as failure:
            log.warning("stale_check_failed", code=failure.code)

    async def _round(self, job_ids: Sequence[JobId] | None) -> int:
        """Publish a batch of what is due among ``job_ids``, or among all; how many they were.

        0 after a failure, which ends the round: the lease of the rest runs out and a later sweep
        takes them again.
        """
        until = trio.current_time() + SENDING_SECONDS
        try:
            claims = await self._outbox.claim_due(
                limit=BATCH, lease_seconds=DISPATCH_LEASE_SECONDS, job_ids=job_ids
            )
        except PortError as failure:
            self._failed("store", failure)
            return 0
        if not await self._publish([HeldJob(claim.job, until) for claim in claims]):
            return 0
        if claims or job_ids is None:
            self._failures = 0
        return len(claims)

    async def _publish(self, jobs: Sequence[HeldJob]) -> bool:
        """Send each whose time is not over, up to the first failure; whether all were sent."""
        sent: dict[JobId, int] = {}
        for each in jobs:
            if trio.current_time() >= each.until:
                continue
            if not await self._send(each.job):
                break
            sent[each.job.id] = each.job.dispatch_seq
        try:
            if sent:
                await self._outbox.mark_dispatched(sent)
        except PortError as failure:
            # They are on their way; unmarked they will be sent again, and the claim tells them
            # apart.
            self._failed("store", failure)
            return False
        return len(sent) == len(jobs)

    async def _send(self, job: Job) -> bool:
        """Whether the broker has it."""
        try:
            await self._sender.send(job)
        except QueueFull:
            # Busy, not broken: the next sweep comes back, without a longer wait.
            self._metrics.publishes.labels(kind="work", result=QueueFull.code).inc()
            return False
        except (PortUnavailable, Unroutable) as failure:
            self._metrics.publishes.labels(kind="work", result=failure.code).inc()
            self._failed("publish", failure)
            return False
        self._metrics.publishes.labels(kind="work", result="ok").inc()
        return True

    def _failed(self, what: str, failure: PortError) -> None:
        self._failures += 1
        log.warning("dispatch_failed", what=what, code=failure.code, tries=self._failures)

    async def _rescue_stale(self) -> None:
        """Publish again only what the queue cannot hold any more: duplicates cost, losses more."""
        waiting = await self._outbox.backlog(older_than_seconds=STALE_SECONDS)
        if waiting.stale == 0 or await self._backlog.ready_count() >= waiting.dispatched:
            return
        count = await self._outbox.dispatch_again(older_than_seconds=STALE_SECONDS, limit=BATCH)
        log.warning("jobs_dispatched_again", count=count)
