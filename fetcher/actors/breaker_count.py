"""Shows how many connections are left alone because they are down."""

import structlog
import trio

from fetcher.actors.metrics import ActorMetrics
from fetcher.domain.errors import PortError
from fetcher.ports import ConnectionBreakers

log = structlog.get_logger(__name__)

COUNT_SECONDS = 15.0


class BreakerCount:
    """Every 15 s: the breakers that are open, in whatever process they were opened."""

    name = "breaker_count"

    def __init__(self, *, breakers: ConnectionBreakers, metrics: ActorMetrics) -> None:
        self._breakers = breakers
        self._metrics = metrics

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            try:
                self._metrics.breakers_open.set(await self._breakers.count_open())
            except PortError as failure:
                log.warning("breakers_not_counted", code=failure.code)
            await trio.sleep(COUNT_SECONDS)
