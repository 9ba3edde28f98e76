"""What the attempts at jobs count, by tenant where that is asked for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fetcher.domain.job_stages import JobStage
from fetcher.domain.tenants import Tenant

MOST_CODES: Final = 100
"""Codes of failures are texts of ours, some made of parts: a bound all the same."""

TAKEOVERS: Final = ("requeued", "claimed", "failed", "cancelled")

Family: TypeAlias = Counter | Histogram | Gauge


@dataclass(slots=True)
class _OfTenant:
    """What was counted for a tenant. One that is opened anew has it from both openings at once."""

    openings: int = 0
    values: dict[Family, set[str]] = field(default_factory=dict)

    def note(self, family: Family, value: str) -> None:
        self.values.setdefault(family, set()).add(value)


class JobFamilies:
    """The instruments. With ``tenant_label`` each has a label ``tenant``, else none has."""

    def __init__(self, registry: CollectorRegistry, *, tenant_label: bool) -> None:
        self.tenant_label = tenant_label
        tenant = ["tenant"] if tenant_label else []
        self.ended = Counter(
            "fetcher_jobs",
            "Attempts that ended, by outcome.",
            ["outcome", *tenant],
            registry=registry,
        )
        self.seconds = Histogram(
            "fetcher_job_duration_seconds",
            "Run time of an attempt.",
            ["outcome", *tenant],
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
            registry=registry,
        )
        self.in_flight = Gauge(
            "fetcher_jobs_in_flight", "Jobs that this process runs now.", tenant, registry=registry
        )
        self.failures = Counter(
            "fetcher_job_failures",
            "Jobs that ended as failed or cancelled, by code.",
            ["code", *tenant],
            registry=registry,
        )
        self.takeovers = Counter(
            "fetcher_lease_takeovers",
            "Leases that ran out, by what became of the job: requeued, claimed, failed, cancelled.",
            ["outcome", *tenant],
            registry=registry,
        )
        self._codes: set[str] = set()
        self._tenants: dict[str, _OfTenant] = {}

    def opened(self, tenant_id: str) -> _OfTenant:
        """Until :meth:`closed`, as often as it was opened."""
        counted = self._tenants.setdefault(tenant_id, _OfTenant())
        counted.openings += 1
        return counted

    def closed(self, tenant_id: str) -> None:
        counted = self._tenants[tenant_id]
        counted.openings -= 1
        if counted.openings:
            return
        del self._tenants[tenant_id]
        for family, values in counted.values.items():
            for value in values:
                family.remove(value, tenant_id)
        self.in_flight.remove(tenant_id)

    def bounded(self, code: str) -> str:
        """``code``, or ``other`` once there are too many."""
        if code not in self._codes and len(self._codes) >= MOST_CODES:
            return "other"
        self._codes.add(code)
        return code


class JobMetrics:
    """One tenant's part of them; all of them where tenants have no label."""

    def __init__(
        self,
        families: JobFamilies,
        tenant: Tenant,
        stage_ended: Callable[[JobStage, float], None],
    ) -> None:
        """``stage_ended`` has no label but the stage."""
        self._families = families
        self._label = [tenant.id] if families.tenant_label else []
        self._counted = families.opened(tenant.id) if families.tenant_label else None
        self.stage_ended = stage_ended
        for outcome in TAKEOVERS:
            # From 0 on, or the first would be no increase.
            self._counter(families.takeovers, outcome)
        self._in_flight()

    def started(self) -> None:
        self._in_flight().inc()

    def ended(self, outcome: str, seconds: float) -> None:
        """What was started, after ``seconds``."""
        self._in_flight().dec()
        self._counter(self._families.ended, outcome).inc()
        self._note(self._families.seconds, outcome)
        self._families.seconds.labels(outcome, *self._label).observe(seconds)

    def failed(self, code: str) -> None:
        self._counter(self._families.failures, self._families.bounded(code)).inc()

    def took_over(self, outcome: str) -> None:
        self._counter(self._families.takeovers, outcome).inc()

    def forget(self) -> None:
        """The tenant has stopped: nothing is told of it any more, unless another opening of it goes
        on. Once."""
        for tenant_id in self._label:
            self._families.closed(tenant_id)

    def _counter(self, family: Counter, value: str) -> Counter:
        self._note(family, value)
        return family.labels(value, *self._label)

    def _in_flight(self) -> Gauge:
        in_flight = self._families.in_flight
        return in_flight.labels(*self._label) if self._label else in_flight

    def _note(self, family: Counter | Histogram, value: str) -> None:
        if self._counted is not None:
            self._counted.note(family, value)
