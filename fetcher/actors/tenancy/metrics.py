"""What the ``tenants`` actor counts. No label names a tenant (decisions, "Metric names")."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fetcher.domain.tenant_events import TenantEventType
from fetcher.domain.tenants import (
    TenantAnswerUnreadable,
    TenantDenied,
    TenantNotConfigured,
    TenantSuspended,
    TenantUnknown,
)

UNKNOWN_EVENT = "unknown"
WORDS = (
    TenantUnknown,
    TenantSuspended,
    TenantDenied,
    TenantNotConfigured,
    TenantAnswerUnreadable,
)


class TenantMetrics:
    """Instruments on the process's registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str) -> Counter:
            return Counter(name, meaning, registry=registry)

        def by_label(name: str, meaning: str, label: str, values: Iterable[str]) -> Counter:
            family = Counter(name, meaning, [label], registry=registry)
            for value in values:
                # From 0 on, or the first would be no increase.
                family.labels(value)
            return family

        self.active = Gauge(
            "fetcher_tenants_active", "Tenants that are open in this process.", registry=registry
        )
        self.opened = counter("fetcher_tenants_opened", "Tenants that were opened.")
        self.failures = counter(
            "fetcher_tenant_failures", "Tenants that could not be opened, or failed while they ran."
        )
        self.refused = by_label(
            "fetcher_tenant_refusals",
            "Tenants that did not open, or ended, by the Tenant Manager's word, by its code.",
            "code",
            (word.code for word in WORDS),
        )
        self.evicted = counter(
            "fetcher_tenants_evicted", "Tenants that were closed because nobody used them."
        )
        self.reconciled = by_label(
            "fetcher_tenant_reconcile",
            "Comparisons with the list of active tenants: ok, tm_unreachable.",
            "result",
            ("ok", "tm_unreachable"),
        )
        self.reconcile_seconds = Histogram(
            "fetcher_tenant_reconcile_duration_seconds",
            "Duration of such a comparison.",
            buckets=(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self.events = by_label(
            "fetcher_tenant_events",
            "Events of tenants that were heard, by type.",
            "type",
            [*(each.value for each in TenantEventType), UNKNOWN_EVENT],
        )
        self.listening = Gauge(
            "fetcher_tenant_events_listening",
            "1 while tenants' events are heard, else 0.",
            registry=registry,
        )
