"""``/readyz/tenant/{id}`` of a process with tenants: configuration 7 and 17.6."""

from collections.abc import Mapping

import pytest
import trio

from fetcher.ports import ProbeResult, ProbeStatus
from fetcher.queries.tenant_readiness import Found, TenantReadiness
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import an_api
from tests.unit.api.tenant_harness import TenantsApi, tenants_api

UP = ProbeResult(status=ProbeStatus.UP, latency_ms=4)
DOWN = ProbeResult(status=ProbeStatus.DOWN, error="timeout")
DEGRADED = ProbeResult(
    status=ProbeStatus.DEGRADED, error="circuit breaker half-open", breaker_state="half-open"
)


def telling(report: TenantReadiness, asked: list[str] | None = None) -> TenantsApi:
    async def look(tenant_id: str) -> TenantReadiness:
        await trio.lowlevel.checkpoint()
        if asked is not None:
            asked.append(tenant_id)
        return report

    return tenants_api(system={"tenant_readiness": look})


def checked(**checks: ProbeResult) -> TenantReadiness:
    return TenantReadiness(found=Found.CHECKED, checks=checks)


async def test_tenant_whose_probes_are_up_is_healthy() -> None:
    asked: list[str] = []
    answered = await telling(checked(mongodb=UP, rabbitmq=UP), asked).get("/readyz/tenant/acme-7")
    assert (answered.status, answered.json) == (
        200,
        {
            "status": "healthy",
            "checks": {
                "mongodb": {"status": "up", "latency_ms": 4},
                "rabbitmq": {"status": "up", "latency_ms": 4},
            },
            "version": "v3.1.0",
            "deployment_mode": "local",
            "tenant_id": "acme-7",
        },
    )
    assert asked == ["acme-7"]


@pytest.mark.parametrize(
    ("result", "body"),
    [
        (DOWN, {"status": "down", "error": "timeout"}),
        (
            DEGRADED,
            {
                "status": "degraded",
                "error": "circuit breaker half-open",
                "breaker_state": "half-open",
            },
        ),
    ],
)
async def test_tenant_of_which_one_probe_is_not_up_is_unhealthy(
    result: ProbeResult, body: Mapping[str, str]
) -> None:
    answered = await telling(checked(mongodb=UP, rabbitmq=result)).get("/readyz/tenant/acme-7")
    assert answered.status == 503
    assert answered.json == {
        "status": "unhealthy",
        "checks": {"mongodb": {"status": "up", "latency_ms": 4}, "rabbitmq": body},
        "version": "v3.1.0",
        "deployment_mode": "local",
        "tenant_id": "acme-7",
    }


@pytest.mark.parametrize(
    ("report", "status", "body"),
    [
        (
            TenantReadiness(found=Found.UNKNOWN, error="tenant not found"),
            404,
            {"error": "tenant not found", "tenant_id": "acme-9"},
        ),
        (
            TenantReadiness(found=Found.UNTOLD, error="tenant manager circuit breaker open"),
            503,
            {"error": "tenant manager circuit breaker open"},
        ),
        (
            TenantReadiness(found=Found.NO_ID, error="tenant id required"),
            400,
            {"error": "tenant id required"},
        ),
        (
            TenantReadiness(found=Found.DRAINING),
            503,
            {
                "status": "unhealthy",
                "checks": {"draining": {"status": "down", "reason": "graceful drain in progress"}},
                "version": "v3.1.0",
                "deployment_mode": "local",
            },
        ),
    ],
)
async def test_tenant_that_is_not_looked_at(
    report: TenantReadiness, status: int, body: Mapping[str, object]
) -> None:
    answered = await telling(report).get("/readyz/tenant/acme-9")
    assert (answered.status, answered.json) == (status, body)


async def test_no_id_is_a_question_too() -> None:
    asked: list[str] = []
    api = telling(TenantReadiness(found=Found.NO_ID, error="tenant id required"), asked)
    for path in ("/readyz/tenant/", "/readyz/tenant"):
        assert (await api.get(path)).raw == b'{"error":"tenant id required"}'
    assert asked == ["", ""]


async def test_id_is_taken_as_it_was_sent() -> None:
    asked: list[str] = []
    unknown = TenantReadiness(found=Found.UNKNOWN, error="tenant not found")
    scope = a_scope("GET", b"/readyz/tenant/a%2Fb%3A")
    talk, raw = await answer_of(telling(unknown, asked).app, scope)
    assert (talk.status, raw) == (404, b'{"error":"tenant not found","tenant_id":"a%2Fb%3A"}')
    assert asked == ["a%2Fb%3A"]


async def test_metrics_have_the_plain_names_and_no_tenant() -> None:
    api = telling(checked(mongodb=UP, rabbitmq=DOWN))
    for _ in range(2):
        await api.get("/readyz/tenant/acme-7")
    metrics = (await api.get("/metrics")).raw.decode()
    assert 'readyz_check_status{dep="mongodb",status="up"} 2.0' in metrics
    assert 'readyz_check_status{dep="rabbitmq",status="down"} 2.0' in metrics
    assert "acme" not in metrics
    drained = telling(TenantReadiness(found=Found.DRAINING))
    await drained.get("/readyz/tenant/acme-7")
    metrics = (await drained.get("/metrics")).raw.decode()
    assert 'readyz_check_status{dep="draining",status="down"} 1.0' in metrics
    assert 'readyz_check_duration_ms_sum{dep="draining",status="down"} 0.0' in metrics


async def test_it_needs_no_token_and_is_off_without_tenants() -> None:
    for path in ("/readyz/tenant/acme-7", "/readyz/tenant/"):
        answered = await an_api().get(path)
        assert (answered.status, answered.raw) == (
            400,
            b'{"error":"multi-tenant mode is disabled"}',
        )
