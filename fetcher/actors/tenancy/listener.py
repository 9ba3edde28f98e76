"""Hears what happens to tenants and says what becomes of them here (spec configuration 11.6)."""

import random
from collections.abc import Callable
from typing import Final, Protocol

import structlog
import trio

from fetcher.actors.contained import failure_of, told_of
from fetcher.actors.tenancy.metrics import UNKNOWN_EVENT, TenantMetrics
from fetcher.domain.backoff import full_jitter
from fetcher.domain.tenant_events import TenantEvent, TenantEventType
from fetcher.domain.tenants import SERVICE, is_tenant_id
from fetcher.ports.tenants import TenantEvents

log = structlog.get_logger(__name__)

RECONNECT_BASE_SECONDS: Final = 0.5
RECONNECT_CAP_SECONDS: Final = 30.0
STEADY_SECONDS: Final = 60.0
"""A connection that held this long starts the back-off anew."""
SPREAD_SECONDS: Final = 5.0
"""All replicas hear of a tenant at once: each asks the Tenant Manager after a wait of its own."""
SHOWN_CHARACTERS: Final = 64

ABOUT_THE_TENANT: Final = frozenset(
    {
        TenantEventType.CREATED,
        TenantEventType.ACTIVATED,
        TenantEventType.UPDATED,
        TenantEventType.SUSPENDED,
        TenantEventType.DELETED,
    }
)
"""Whatever the service. All others concern us where they name our service."""


class HeardTenants(Protocol):
    """The tenants of this process. Nothing of it waits."""

    def is_open(self, tenant_id: str) -> bool:
        """Whether it runs here, or is about to."""
        ...

    def start(self, tenant_id: str, *, after_seconds: float = 0.0) -> None:
        """Where every active tenant is to run: let this one. Nothing elsewhere."""
        ...

    def remove(self, tenant_id: str) -> None:
        """Stop it, and forget what is remembered of it."""
        ...

    def renew(self, tenant_id: str, *, after_seconds: float) -> None:
        """Forget what is remembered of it; where it runs or is to run, open it anew."""
        ...

    def look(self, tenant_id: str) -> None:
        """See whether it has changed, where it runs."""
        ...


class TenantListener:
    """Events are handled in order and none waits for another: waits belong to their tenants.
    Whatever fails here is a lost connection: it must end no tenant.

    ``missed`` is called when the connection is there again after it was lost.
    """

    def __init__(
        self,
        events: TenantEvents,
        tenants: HeardTenants,
        *,
        missed: Callable[[], None],
        metrics: TenantMetrics,
    ) -> None:
        self._events = events
        self._tenants = tenants
        self._missed = missed
        self._metrics = metrics
        self._has_missed = False

    async def run(self) -> None:
        """Until cancelled; a lost connection is waited out."""
        tries = 0
        while True:
            began_at = trio.current_time()
            failure = await failure_of(self._listen)
            self._has_missed = True
            tries = 0 if trio.current_time() - began_at > STEADY_SECONDS else tries + 1
            told = {} if failure is None else told_of(failure)
            log.warning("tenant_events_lost", tries=tries, **told)
            await trio.sleep(
                full_jitter(
                    tries, base_seconds=RECONNECT_BASE_SECONDS, cap_seconds=RECONNECT_CAP_SECONDS
                )
            )

    async def _listen(self) -> None:
        async with self._events.listen() as events:
            log.info("tenant_events_heard")
            with self._metrics.listening.track_inprogress():
                if self._has_missed:
                    self._missed()
                async for event in events:
                    self._handle(event)

    def _handle(self, event: TenantEvent) -> None:
        try:
            kind = TenantEventType(event.type)
        except ValueError:
            self._metrics.events.labels(type=UNKNOWN_EVENT).inc()
            log.warning("tenant_event_unknown", type=event.type[:SHOWN_CHARACTERS])
            return
        self._metrics.events.labels(type=kind.value).inc()
        if not is_tenant_id(event.tenant_id):
            log.warning("tenant_event_invalid", type=kind.value)
        elif kind in ABOUT_THE_TENANT:
            self._handle_tenant(kind, event.tenant_id)
        elif event.service == SERVICE:
            self._handle_service(kind, event.tenant_id)
        else:
            level = log.warning if kind is TenantEventType.CACHE_INVALIDATE else log.debug
            level("tenant_event_skipped", type=kind.value, tenant_id=event.tenant_id)

    def _handle_tenant(self, kind: TenantEventType, tenant_id: str) -> None:
        match kind:
            case TenantEventType.SUSPENDED | TenantEventType.DELETED:
                self._tell(kind, tenant_id)
                self._tenants.remove(tenant_id)
            case TenantEventType.ACTIVATED | TenantEventType.UPDATED:
                self._tenants.look(tenant_id)

    def _handle_service(self, kind: TenantEventType, tenant_id: str) -> None:
        wait_seconds = random.uniform(0, SPREAD_SECONDS)  # noqa: S311 - spreads load
        self._tell(kind, tenant_id)
        match kind:
            case TenantEventType.ASSOCIATED:
                self._tenants.start(tenant_id)
            case TenantEventType.REACTIVATED:
                self._tenants.start(tenant_id, after_seconds=wait_seconds)
            case (
                TenantEventType.DISASSOCIATED
                | TenantEventType.SERVICE_SUSPENDED
                | TenantEventType.PURGED
            ):
                self._tenants.remove(tenant_id)
            case TenantEventType.CREDENTIALS_ROTATED:
                self._tenants.renew(tenant_id, after_seconds=wait_seconds)
            case TenantEventType.CACHE_INVALIDATE if self._tenants.is_open(tenant_id):
                self._tenants.renew(tenant_id, after_seconds=wait_seconds)
            case TenantEventType.CACHE_INVALIDATE:
                self._tenants.remove(tenant_id)

    def _tell(self, kind: TenantEventType, tenant_id: str) -> None:
        log.info("tenant_event", type=kind.value, tenant_id=tenant_id)
