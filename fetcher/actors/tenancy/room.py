"""How many tenants stay open: a soft limit, and an end for those that nobody uses (spec 11.7)."""

import math
from collections.abc import Mapping
from typing import Final, Generic

import structlog
import trio

from fetcher.actors.tenancy.entry import TenantEntry
from fetcher.actors.tenancy.metrics import TenantMetrics
from fetcher.actors.tenancy.parts import TenantTimes
from fetcher.actors.tenancy.running import TenantT

log = structlog.get_logger(__name__)

SWEEP_SECONDS: Final = 15.0
TELL_SECONDS: Final = 60.0


class TenantRoom(Generic[TenantT]):
    """The spec closes an idle tenant only where another one needs its place. Here it is closed in
    any case after its idle time, which costs the next request an opening and nobody a place."""

    def __init__(
        self,
        entries: Mapping[str, TenantEntry[TenantT]],
        *,
        times: TenantTimes,
        metrics: TenantMetrics,
    ) -> None:
        self._entries = entries
        self._times = times
        self._metrics = metrics
        self._told_at = -math.inf

    def make(self) -> None:
        """Before one more is opened: end the one that was idle for the longest, where that is long
        enough. Without such a one the limit is passed."""
        most = self._times.most_open
        count = sum(entry.is_wanted for entry in self._entries.values())
        if most <= 0 or count < most:
            return
        idle = self._idle()
        if idle:
            self._close(max(idle, key=lambda entry: entry.idle_seconds))
        elif trio.current_time() - self._told_at >= TELL_SECONDS:
            self._told_at = trio.current_time()
            log.warning("tenants_past_the_limit", limit=most, open=count + 1)

    async def sweep(self) -> None:
        """Until cancelled."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            for entry in self._idle():
                self._close(entry)

    def _idle(self) -> list[TenantEntry[TenantT]]:
        return [
            entry
            for entry in self._entries.values()
            if entry.is_wanted and entry.idle_seconds >= self._times.idle_seconds
        ]

    def _close(self, entry: TenantEntry[TenantT]) -> None:
        log.info("tenant_idle", tenant_id=entry.tenant_id, seconds=round(entry.idle_seconds))
        self._metrics.evicted.inc()
        entry.stop()
