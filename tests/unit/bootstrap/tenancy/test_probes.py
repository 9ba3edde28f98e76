"""Readiness with tenants names their stores as each tenant's own (spec configuration 6.5, 17.5)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import structlog
import trio

from fetcher.bootstrap.tenancy.gate import OpenTenantGate
from fetcher.bootstrap.tenancy.probes import (
    NOT_ASKED,
    OF_EACH_TENANT,
    process_probes,
    tenant_probes,
)
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.settings import Role, load_settings
from tests.unit.settings.test_redis_settings import encoded
from tests.unit.settings.test_tenant_settings import TENANTS


async def results(**changes: str) -> dict[str, ProbeResult]:
    probes = process_probes(load_settings({**TENANTS, **changes}, Role.ALL))
    return {probe.name: await probe.check() for probe in probes}


async def test_stores_are_each_tenants_own_and_the_tenant_manager_is_not_asked() -> None:
    found = await results()
    assert found == {
        "mongodb": ProbeResult(status=ProbeStatus.NOT_APPLICABLE, reason=OF_EACH_TENANT),
        "rabbitmq": ProbeResult(
            status=ProbeStatus.NOT_APPLICABLE, reason=OF_EACH_TENANT, tls=False
        ),
        "tenant_manager": ProbeResult(status=ProbeStatus.UP, reason=NOT_ASKED, tls=True),
    }
    probes = process_probes(load_settings(TENANTS, Role.ALL))
    assert [probe.timeout_seconds for probe in probes if probe.name == "tenant_manager"] == [1.0]


@pytest.mark.parametrize(
    ("uri", "has_roots", "tls"),
    [
        ("mongodb+srv://m.test", False, True),
        ("mongodb://m.test", True, True),
        ("mongodb://m.test", False, False),
        ("", False, None),
    ],
)
async def test_what_is_told_of_tls_is_what_is_configured(
    uri: str, has_roots: bool, tls: bool | None, authority_pem: str
) -> None:
    roots = {"MONGO_TLS_CA_CERT": encoded(authority_pem)} if has_roots else {}
    found = await results(
        MONGO_URI=uri,
        RABBITMQ_TLS="true",
        MULTI_TENANT_URL="http://tm.test",
        MULTI_TENANT_ALLOW_INSECURE_HTTP="true",
        **roots,
    )
    said = (found["mongodb"].tls, found["rabbitmq"].tls, found["tenant_manager"].tls)
    assert said == (tls, True, False)


class Gate:
    """Opens a tenant whose probes see what a record of the log would be bound to."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, object]] = []

    @asynccontextmanager
    async def using(self, tenant_id: str) -> AsyncIterator["Gate"]:
        await trio.lowlevel.checkpoint()
        yield self

    def probe(self, name: str) -> Probe:
        async def check() -> ProbeResult:
            await trio.lowlevel.checkpoint()
            bound = structlog.contextvars.get_contextvars()
            self.bound.append((name, bound.get("tenant_id")))
            return ProbeResult(status=ProbeStatus.UP)

        return Probe(name=name, timeout_seconds=1.0, check=check)


async def test_what_the_log_says_of_a_tenants_stores_says_whose_they_are() -> None:
    gate = Gate()
    for probe in tenant_probes(cast("OpenTenantGate", gate), "acme-7"):
        await probe.check()
    assert gate.bound == [("mongodb", "acme-7"), ("rabbitmq", "acme-7")]
    assert "tenant_id" not in structlog.contextvars.get_contextvars()
