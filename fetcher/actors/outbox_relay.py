"""Publishes terminal events as soon as they are recorded."""

from typing import Protocol

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import RelayHint
from fetcher.domain.ids import JobId

log = structlog.get_logger(__name__)

BATCH = 50


class EventRounds(Protocol):
    async def publish_due(self, *, limit: int, job_ids: list[JobId] | None = None) -> int:
        """Claim due events and publish each; how many were claimed. Raises nothing known."""
        ...


class OutboxRelay:
    """Works on hints alone; what it misses, the repairer finds.

    The last round of a drain lets the publish at hand end, since a cut one would keep its event
    leased; then it goes once over everything that is due, and ends.
    """

    name = "outbox_relay"

    def __init__(
        self,
        *,
        events: EventRounds,
        hints: Channel[RelayHint],
        lifecycle: Lifecycle,
    ) -> None:
        self._events = events
        self._hints = hints
        self._lifecycle = lifecycle

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        last_round = self._lifecycle.last_round
        while (hint := await self._hints.receive_until(last_round)) is not None:
            hinted = [hint, *self._hints.receive_waiting(limit=BATCH - 1)]
            await self._events.publish_due(limit=BATCH, job_ids=[h.job_id for h in hinted])
        while await self._events.publish_due(limit=BATCH) == BATCH:
            pass
