"""Entries of readiness that a process with tenants has instead of its own stores' (spec 6.5)."""

from collections.abc import Sequence
from typing import Final

import structlog
import trio

from fetcher.bootstrap.tenancy.gate import OpenTenantGate
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.settings import Settings
from fetcher.settings.mongo_address import AddressInvalid
from fetcher.settings.mongo_rules import mongo_uses_tls

OF_EACH_TENANT: Final = "multi-tenant: see /readyz/tenant/:id"
TENANT_PROBE_SECONDS: Final = 2.0
"""Spec configuration 6.4."""
NOT_ASKED: Final = "configuration only"
"""A short outage there must not take away pods that serve from what they know (spec 6.6)."""


def process_probes(settings: Settings) -> tuple[Probe, ...]:
    """None of them asks anybody."""
    manager_has_tls = not settings.multi_tenant_url.lower().startswith("http://")
    return (
        _fixed("mongodb", ProbeStatus.NOT_APPLICABLE, OF_EACH_TENANT, tls=_mongo_tls(settings)),
        _fixed("rabbitmq", ProbeStatus.NOT_APPLICABLE, OF_EACH_TENANT, tls=settings.rabbitmq_tls),
        _fixed("tenant_manager", ProbeStatus.UP, NOT_ASKED, tls=manager_has_tls),
    )


def tenant_probes(gate: OpenTenantGate, tenant_id: str) -> Sequence[Probe]:
    """The tenant's own stores (spec configuration 7), of a tenant that may not be open yet: both
    wait for the same opening. Their checks raise PortError where it cannot be opened."""
    return tuple(_within(gate, tenant_id, name) for name in ("mongodb", "rabbitmq"))


def _within(gate: OpenTenantGate, tenant_id: str, name: str) -> Probe:
    async def check() -> ProbeResult:
        # readiness has fixed texts, the log has the reason: it must say whose
        with structlog.contextvars.bound_contextvars(tenant_id=tenant_id):
            async with gate.using(tenant_id) as tenant:
                return await tenant.probe(name).check()

    return Probe(name=name, timeout_seconds=TENANT_PROBE_SECONDS, check=check)


def _mongo_tls(settings: Settings) -> bool | None:
    """As the platform's own address would have it; None where there is none, or one that is no
    address: with tenants nobody calls it."""
    if not (settings.mongo_host or "://" in settings.mongo_uri.get_secret_value()):
        return None
    try:
        return mongo_uses_tls(settings)
    except AddressInvalid:
        return None


def _fixed(name: str, status: ProbeStatus, reason: str, *, tls: bool | None) -> Probe:
    async def check() -> ProbeResult:
        await trio.lowlevel.checkpoint()
        return ProbeResult(status=status, reason=reason, tls=tls)

    return Probe(name=name, timeout_seconds=1.0, check=check)
