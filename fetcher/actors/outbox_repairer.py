"""Finds terminal events that nobody has published yet."""

from typing import Protocol

import structlog
import trio

from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.outbox_relay import EventRounds
from fetcher.domain.errors import PortError
from fetcher.ports import EventOutbox

log = structlog.get_logger(__name__)

REPAIR_SECONDS = 30.0
BATCH = 25


class ReferenceRounds(Protocol):
    async def publish_due(self, *, limit: int) -> int:
        """As :meth:`EventRounds.publish_due`, of what the reference left in its outbox."""
        ...


class OutboxRepairer:
    """At start, then every 30 s: what is due is claimed and published, page after page.

    ``reference`` are the events of the reference's outbox, where the store can have one: between
    their pages ours come first.
    """

    name = "outbox_repairer"

    def __init__(
        self,
        *,
        events: EventRounds,
        outbox: EventOutbox,
        metrics: ActorMetrics,
        reference: ReferenceRounds | None = None,
        repair_seconds: float = REPAIR_SECONDS,
    ) -> None:
        self._events = events
        self._outbox = outbox
        self._metrics = metrics
        self._reference = reference
        self._repair_seconds = repair_seconds

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await self._publish_all()
            while self._reference and await self._reference.publish_due(limit=BATCH) == BATCH:
                await self._publish_all()
            await self._measure()
            await trio.sleep(self._repair_seconds)

    async def _publish_all(self) -> None:
        while await self._events.publish_due(limit=BATCH) == BATCH:
            pass

    async def _measure(self) -> None:
        try:
            backlog = await self._outbox.backlog()
        except PortError as failure:
            log.warning("outbox_backlog_unknown", code=failure.code)
            return
        self._metrics.outbox_pending.set(backlog.pending)
        self._metrics.outbox_oldest_seconds.set(backlog.oldest_seconds)
