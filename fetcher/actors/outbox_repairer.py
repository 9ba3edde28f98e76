"""Finds terminal events that nobody has published yet."""

from typing import Protocol

import trio

from fetcher.actors.outbox_relay import EventRounds

REPAIR_SECONDS = 30.0
BATCH = 25


class ReferenceRounds(Protocol):
    async def publish_due(self, *, limit: int) -> int:
        """As :meth:`EventRounds.publish_due`, of what the reference left in its outbox."""
        ...


class OutboxRepairer:
    """After ``first_after_seconds``, then every ``repair_seconds``: what is due is claimed and
    published, page after page.

    ``reference`` are the events of the reference's outbox, where the store can have one: between
    their pages ours come first.
    """

    name = "outbox_repairer"

    def __init__(
        self,
        *,
        events: EventRounds,
        reference: ReferenceRounds | None = None,
        repair_seconds: float = REPAIR_SECONDS,
        first_after_seconds: float = 0.0,
    ) -> None:
        self._events = events
        self._reference = reference
        self._repair_seconds = repair_seconds
        self._first_after_seconds = first_after_seconds

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep(self._first_after_seconds)
        while True:
            await self._publish_all()
            while self._reference and await self._reference.publish_due(limit=BATCH) == BATCH:
                await self._publish_all()
            await trio.sleep(self._repair_seconds)

    async def _publish_all(self) -> None:
        while await self._events.publish_due(limit=BATCH) == BATCH:
            pass
