"""What an outage makes every tenant of a process say, told of a few of them."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
from structlog.typing import EventDict, WrappedLogger

WINDOW_SECONDS: Final = 60.0
TENANTS_A_WINDOW: Final = 10

SAID_BY_ALL: Final = frozenset(
    {
        "authorization_unavailable",
        "breakers_unknown",
        "consumer_degraded",
        "consumer_lost",
        "dead_letters_away",
        "dead_letters_not_counted",
        "dispatch_failed",
        "events_not_published",
        "internal_source_skipped",
        "own_host_unresolved",
        "rabbitmq_not_healthy",
        "reaping_failed",
        "reference_events_not_published",
        "retention_failed",
        "sample_failed",
        "stale_check_failed",
        "tenant_degraded",
        "tenant_failed",
        "tenant_kept_as_it_was",
        "tenant_not_entered",
        "topology_not_declared",
    }
)
"""None of what concerns one job: that is told each time."""


@dataclass(slots=True)
class _Window:
    began_at: float = -math.inf
    tenants: set[str] = field(default_factory=set)
    left_out: int = 0


class FewOfMany:
    """A structlog processor: of each such record, with the same ``code`` and ``what``, one a tenant
    and ten tenants a minute. The first one after that says how many were ``left_out``.

    The tenant must stand in the record already. Used by the event loop's thread alone.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._windows: dict[tuple[str, str, str], _Window] = {}

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        name = str(event.get("event"))
        if name not in SAID_BY_ALL:
            return event
        key = (name, str(event.get("code", "")), str(event.get("what", "")))
        window = self._windows.get(key)
        if window is None or self._now() - window.began_at >= WINDOW_SECONDS:
            left_out = window.left_out if window is not None else 0
            window = self._windows[key] = _Window(began_at=self._now())
            if left_out:
                event["left_out"] = left_out
        tenant_id = str(event.get("tenant_id", ""))
        if tenant_id in window.tenants or len(window.tenants) >= TENANTS_A_WINDOW:
            window.left_out += 1
            raise structlog.DropEvent
        window.tenants.add(tenant_id)
        return event
