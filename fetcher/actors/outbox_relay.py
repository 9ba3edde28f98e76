"""Publishes terminal events as soon as they are recorded."""

from typing import Protocol

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import RelayHint
from fetcher.actors.metrics import ActorMetrics
from fetcher.domain.ids import JobId

log = structlog.get_logger(__name__)

BATCH = 50


class EventRounds(Protocol):
    async def publish_due(self, *, limit: int, job_ids: list[JobId] | None = None) -> int:
        """Claim due events and publish each; how many were claimed. Raises nothing known."""
        ...


class OutboxRelay:
    """Works on hints alone; what it misses, the repairer finds.

    After the last hint of a drain it goes once over everything that is due, then ends.
    """

    name = "outbox_relay"

    def __init__(
        self,
        *,
        events: EventRounds,
        hints: Channel[RelayHint],
        lifecycle: Lifecycle,
        metrics: ActorMetrics,
    ) -> None:
        self._events = events
        self._hints = hints
        self._lifecycle = lifecycle
        self._metrics = metrics

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._relay)
            await self._lifecycle.last_round.wait()
            nursery.cancel_scope.cancel()
        while await self._events.publish_due(limit=BATCH) == BATCH:
            pass

    async def _relay(self) -> None:
        async for hint in self._hints:
            hinted = [hint, *self._hints.receive_waiting(limit=BATCH - 1)]
            self._metrics.hints_dropped.labels(channel=self._hints.name).set(self._hints.dropped)
            await self._events.publish_due(limit=BATCH, job_ids=[h.job_id for h in hinted])
