"""How much lies in the embedded queues."""

from collections.abc import Sequence

from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE
from fetcher.adapters.local.work_queue import LocalWorkQueue
from fetcher.ports import DeadLetterLevels, QueueDepth


class LocalQueueDepths:
    def __init__(self, work: LocalWorkQueue, dead_letters: DeadLetterLevels) -> None:
        self._work = work
        self._dead_letters = dead_letters

    async def depths(self) -> Sequence[QueueDepth]:
        ready = await self._work.ready_count()
        dead = (await self._dead_letters.level()).messages
        return [
            QueueDepth(name=self._work.name, purpose="work", ready=ready),
            QueueDepth(name=DEAD_LETTER_QUEUE, purpose="dead_letters", ready=dead),
        ]
