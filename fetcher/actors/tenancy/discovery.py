"""Compares the tenants that run here with those that are active (spec configuration 11.9)."""

from collections.abc import Sequence
from typing import Final, Protocol

import structlog
import trio

from fetcher.actors.contained import failure_of, told_of
from fetcher.actors.tenancy.metrics import TenantMetrics
from fetcher.domain.backoff import full_jitter
from fetcher.ports.tenants import TenantDirectory

log = structlog.get_logger(__name__)

LIST_SECONDS: Final = 5.0
FIRST_TRIES: Final = 4
FIRST_BASE_SECONDS: Final = 1.0
FIRST_CAP_SECONDS: Final = 8.0


class ListedTenants(Protocol):
    def listed(self, active: Sequence[str]) -> None:
        """A list was read: start who is missing here, count who is missing there."""
        ...


class TenantDiscovery:
    """A first pass at once, up to four tries of it, then one every ``seconds``. A list that could
    not be read stops nobody."""

    def __init__(
        self,
        directory: TenantDirectory,
        tenants: ListedTenants,
        *,
        seconds: float,
        metrics: TenantMetrics,
    ) -> None:
        self._directory = directory
        self._tenants = tenants
        self._seconds = seconds
        self._metrics = metrics
        self._asked = trio.Event()
        self._active: Sequence[str] = ()

    def soon(self) -> None:
        """Something may have been missed: do not wait for the next pass."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        for tries in range(FIRST_TRIES):
            if await self._compare():
                break
            if tries < FIRST_TRIES - 1:
                await trio.sleep(
                    full_jitter(
                        tries, base_seconds=FIRST_BASE_SECONDS, cap_seconds=FIRST_CAP_SECONDS
                    )
                )
        while True:
            with trio.move_on_after(self._seconds):
                await self._asked.wait()
            self._asked = trio.Event()
            await self._compare()

    async def _compare(self) -> bool:
        began_at = trio.current_time()
        failure = await failure_of(self._read)
        if failure is not None:
            log.warning("tenants_not_listed", **told_of(failure))
            self._tell("tm_unreachable", began_at)
            return False
        self._tenants.listed(self._active)
        self._tell("ok", began_at)
        return True

    async def _read(self) -> None:
        with trio.fail_after(LIST_SECONDS):
            self._active = await self._directory.active(within_seconds=LIST_SECONDS)

    def _tell(self, result: str, began_at: float) -> None:
        self._metrics.reconciled.labels(result=result).inc()
        self._metrics.reconcile_seconds.observe(trio.current_time() - began_at)
