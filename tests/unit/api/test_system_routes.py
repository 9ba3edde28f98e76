"""Health, readiness, metrics, version: spec configuration 5, 6, 8 and 17.5."""

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families
from trio.testing import MockClock

from fetcher.api.metrics import METRICS_CONTENT_TYPE, ReadinessMetrics, process_registry, render
from fetcher.api.services import HealthAnswer, ReadinessAnswer
from fetcher.api.system_app import create_system_app
from fetcher.ports import ProbeResult, ProbeStatus
from tests.unit.api.harness import CONNECTIONS, Answered, Api, an_api

UP = ProbeResult(status=ProbeStatus.UP, latency_ms=4, tls=True)
DOWN = ProbeResult(status=ProbeStatus.DOWN, tls=False, error="timeout")
DEGRADED = ProbeResult(status=ProbeStatus.DEGRADED, breaker_state="half-open")
SKIPPED = ProbeResult(status=ProbeStatus.SKIPPED, reason="switched off")
NOT_APPLICABLE = ProbeResult(status=ProbeStatus.NOT_APPLICABLE, reason="multi-tenant")


def an_api_with(checks: Mapping[str, ProbeResult], *, draining: bool = False) -> Api:
    return an_api(readiness=ReadinessAnswer(draining=draining, checks=checks))


async def readiness(checks: Mapping[str, ProbeResult], *, draining: bool = False) -> Answered:
    return await an_api_with(checks, draining=draining).get("/readyz")


@pytest.mark.parametrize(
    ("passed", "status", "body"),
    [
        (True, 200, b'{"status":"healthy"}'),
        (False, 503, b'{"reason":"self-probe failed","status":"unhealthy"}'),
    ],
)
async def test_health_tells_whether_the_self_probe_passed(
    passed: bool, status: int, body: bytes
) -> None:
    answered = await an_api(health=HealthAnswer(self_probe_passed=passed)).get("/health")
    assert (answered.status, answered.raw) == (status, body)
    assert answered.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("checks", "status"),
    [
        ({}, 200),
        ({"mongodb": UP}, 200),
        ({"mongodb": UP, "x": SKIPPED}, 200),
        ({"mongodb": UP, "x": NOT_APPLICABLE}, 200),
        ({"mongodb": UP, "rabbitmq": DOWN}, 503),
        ({"mongodb": DEGRADED}, 503),
        ({"redis": DOWN, "mongodb": UP}, 200),
    ],
)
async def test_readiness_is_decided_by_what_is_down_unless_optional(
    checks: Mapping[str, ProbeResult], status: int
) -> None:
    answered = await readiness(checks)
    assert answered.status == status
    assert answered.json["status"] == ("healthy" if status == 200 else "unhealthy")
    assert set(answered.json["checks"]) == set(checks)
    assert set(answered.json) == {"status", "checks", "version", "deployment_mode"}


async def test_readiness_leaves_out_what_does_not_apply() -> None:
    answered = await readiness({"a": UP, "b": DOWN, "c": DEGRADED, "d": SKIPPED})
    assert answered.json == {
        "status": "unhealthy",
        "checks": {
            "a": {"status": "up", "latency_ms": 4, "tls": True},
            "b": {"status": "down", "tls": False, "error": "timeout"},
            "c": {"status": "degraded", "breaker_state": "half-open"},
            "d": {"status": "skipped", "reason": "switched off"},
        },
        "version": "v3.1.0",
        "deployment_mode": "local",
    }


async def test_draining_is_503_with_the_draining_entry_only() -> None:
    api = an_api_with({"mongodb": UP}, draining=True)
    answered = await api.get("/readyz")
    assert answered.status == 503
    assert answered.json["checks"] == {
        "draining": {"status": "down", "reason": "graceful drain in progress"}
    }
    metrics = (await api.get("/metrics")).raw.decode()
    assert 'readyz_check_status{dep="draining",status="down"} 1.0' in metrics


async def test_every_probe_of_every_request_is_counted() -> None:
    api = an_api_with({"mongodb": UP, "redis": DOWN})
    for _ in range(2):
        await api.get("/readyz")
    api.services.system.readiness_metrics.set_self_probe("mongodb", True)
    api.services.system.readiness_metrics.set_self_probe("redis", False)
    answered = await api.get("/metrics")
    assert answered.headers["Content-Type"] == METRICS_CONTENT_TYPE
    lines = answered.raw.decode().splitlines()
    for line in (
        "# TYPE readyz_check_status counter",
        'readyz_check_status{dep="mongodb",status="up"} 2.0',
        'readyz_check_status{dep="redis",status="down"} 2.0',
        "# TYPE readyz_check_duration_ms histogram",
        'readyz_check_duration_ms_bucket{dep="mongodb",le="1",status="up"} 0.0',
        'readyz_check_duration_ms_bucket{dep="mongodb",le="5",status="up"} 2.0',
        'readyz_check_duration_ms_bucket{dep="mongodb",le="+Inf",status="up"} 2.0',
        'readyz_check_duration_ms_count{dep="mongodb",status="up"} 2.0',
        'readyz_check_duration_ms_sum{dep="mongodb",status="up"} 8.0',
        "# TYPE selfprobe_result gauge",
        'selfprobe_result{dep="mongodb"} 1.0',
        'selfprobe_result{dep="redis"} 0.0',
    ):
        assert line in lines
    assert not any("tenant" in line for line in lines)


def test_family_appears_once_it_has_a_sample() -> None:
    registry = process_registry()
    metrics = ReadinessMetrics(registry)
    assert b"readyz" not in render(registry)
    assert b"selfprobe" not in render(registry)
    metrics.observe("mongodb", ProbeResult(status=ProbeStatus.UP, latency_ms=5000))
    text = render(registry).decode()
    assert 'le="5000",status="up"} 1.0' in text
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"readyz_check_status", "process_cpu_seconds", "python_info"} <= families


@pytest.mark.parametrize("draining", [False, True])
async def test_tenant_route_is_refused_in_single_tenant_mode(draining: bool) -> None:
    api = an_api_with({"mongodb": UP}, draining=draining)
    answered = await api.get("/readyz/tenant/acme-9")
    assert (answered.status, answered.raw) == (400, b'{"error":"multi-tenant mode is disabled"}')
    assert answered.headers["Content-Type"] == "application/json"
    assert b"readyz_check" not in (await api.get("/metrics")).raw


@pytest.mark.parametrize("path", ["/health", "/readyz", "/version", "/metrics"])
async def test_head_is_answered_as_get_is(path: str) -> None:
    api = an_api_with({"mongodb": UP})
    got, head = await api.get(path), await api.call("HEAD", path)
    assert (got.status, head.status) == (200, 200)
    assert head.headers["Content-Type"] == got.headers["Content-Type"]


async def test_version_tells_the_build_and_the_time(autojump_clock: MockClock) -> None:
    answered = await an_api().get("/version")
    assert answered.json == {"version": "v3.1.0", "requestDate": "2026-03-14T09:26:53.123456Z"}


async def test_worker_s_server_has_the_system_routes_only() -> None:
    api = an_api()
    api.app = create_system_app(api.services.system)
    for path in ("/health", "/readyz", "/metrics", "/version"):
        assert (await api.get(path)).status == 200
    for path in (CONNECTIONS, "/openapi.json", "/v1/fetcher/events"):
        assert (await api.get(path)).status == 404
