"""Publishes pending jobs to the work queue (design section 4, step 2)."""

from collections.abc import Sequence
from typing import Protocol

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import DispatchHint
from fetcher.actors.metrics import ActorMetrics
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortError, PortUnavailable, QueueFull, Unroutable
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.ports import DispatchOutbox, WorkBacklog

log = structlog.get_logger(__name__)

BATCH = 50
DISPATCH_LEASE_SECONDS = 15.0
SWEEP_SECONDS = 5.0
STALE_SECONDS = 600.0
"""A dispatched job that nobody claimed in this time may have lost its message."""


class WorkSender(Protocol):
    async def send(self, job: Job) -> None:
        """Sign and publish one job's work message; raises what a publisher raises."""


class Dispatcher:
    """The sweep is the truth and hints only shorten the wait: a broker outage delays jobs."""

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
    ) -> None:
        self._outbox = outbox
        self._sender = sender
        self._backlog = backlog
        self._hints = hints
        self._metrics = metrics
        self._sweep_seconds = sweep_seconds
        self._failures = 0

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        next_sweep = trio.current_time()
        while True:
            hinted: list[JobId] = []
            with trio.move_on_at(next_sweep):
                first = await self._hints.receive()
                hinted = [first.job_id]
                hinted += [h.job_id for h in self._hints.receive_waiting(limit=BATCH - 1)]
            self._metrics.hints_dropped.labels(channel=self._hints.name).set(self._hints.dropped)
            if hinted and self._failures == 0:
                await self._round(hinted)
            if trio.current_time() >= next_sweep:
                await self._sweep()
                next_sweep = trio.current_time() + self._sweep_seconds

    async def _sweep(self) -> None:
        while await self._round(None) == BATCH:
            pass
        if self._failures:
            await trio.sleep(full_jitter(self._failures, base_seconds=0.5, cap_seconds=30.0))
            return
        try:
            await self._rescue_stale()
        except PortError as failure:
            log.warning("stale_check_failed", code=failure.code)

    async def _round(self, job_ids: Sequence[JobId] | None) -> int:
        """Publish one batch; how many were claimed. A failure ends the round: the lease of the
        rest runs out and a later sweep takes them again."""
        try:
            claims = await self._outbox.claim_due(
                limit=BATCH, lease_seconds=DISPATCH_LEASE_SECONDS, job_ids=job_ids
            )
        except PortError as failure:
            self._failed("store", failure)
            return 0
        for claim in claims:
            try:
                await self._sender.send(claim.job)
            except QueueFull:
                # Busy, not broken: the next sweep comes back, without a longer wait.
                self._metrics.publishes.labels(kind="work", result=QueueFull.code).inc()
                return 0
            except (PortUnavailable, Unroutable) as failure:
                self._metrics.publishes.labels(kind="work", result=failure.code).inc()
                self._failed("publish", failure)
                return 0
            self._metrics.publishes.labels(kind="work", result="ok").inc()
            try:
                await self._outbox.mark_dispatched(claim.job.id, claim.dispatch_seq)
            except PortError as failure:
                # It is on its way; unmarked it will be sent again, and the claim tells them apart.
                self._failed("store", failure)
                return 0
        if claims or job_ids is None:
            self._failures = 0
        return len(claims)

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
