"""Shows how many dead letters there are, and the age of the oldest."""

import math

import structlog
import trio

from fetcher.actors.sampled_metrics import DeadLetterShare
from fetcher.domain.errors import PortError
from fetcher.ports import DeadLetterLevel, DeadLetterLevels, UtcNow

log = structlog.get_logger(__name__)

COUNT_SECONDS = 60.0


class DeadLetterCount:
    """Once a minute, however often somebody scrapes. While they cannot be counted the last count
    stands, and the age goes on."""

    name = "dead_letter_count"

    def __init__(
        self,
        *,
        levels: DeadLetterLevels,
        now: UtcNow,
        share: DeadLetterShare,
        first_after_seconds: float = 0.0,
    ) -> None:
        self._levels = levels
        self._now = now
        self._share = share
        self._first_after_seconds = first_after_seconds
        self._last: DeadLetterLevel | None = None

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep(self._first_after_seconds)
        while True:
            try:
                self._last = await self._levels.level()
            except PortError as failure:
                log.warning("dead_letters_not_counted", code=failure.code)
            self._show()
            await trio.sleep(COUNT_SECONDS)

    def _show(self) -> None:
        if self._last is None:
            return
        self._share.messages = self._last.messages
        self._share.oldest_seconds = self._age_seconds(self._last)

    def _age_seconds(self, level: DeadLetterLevel) -> float:
        if level.messages == 0:
            return 0.0
        if level.oldest_at is None:
            return math.nan
        return max(0.0, (self._now() - level.oldest_at).total_seconds())
