"""Health, readiness, metrics and version (spec configuration 5 to 8), without authentication."""

from collections.abc import Callable

from quart import Response

from fetcher.api.metrics import METRICS_CONTENT_TYPE
from fetcher.api.models.system import (
    DRAINING,
    CheckBody,
    HealthBody,
    ReadinessBody,
    VersionBody,
)
from fetcher.api.routing import JSON, Route, Success, answer
from fetcher.api.services import SystemServices
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import ProbeStatus

FAILING = frozenset({ProbeStatus.DOWN, ProbeStatus.DEGRADED})


class SystemRoutes:
    def __init__(self, services: SystemServices) -> None:
        self._services = services

    async def health(self) -> Response:
        report = await self._services.health()
        body = HealthBody.of(self_probe_passed=report.self_probe_passed)
        return answer(body, 200 if report.self_probe_passed else 503)

    async def readiness(self) -> Response:
        """Every probe of every request is counted, an optional one too."""
        report = await self._services.readiness()
        checks = DRAINING if report.draining else report.checks
        for name, result in checks.items():
            self._services.readiness_metrics.observe(name, result)
        failing = any(
            result.status in FAILING and name not in self._services.optional_dependencies
            for name, result in checks.items()
        )
        body = ReadinessBody(
            status="unhealthy" if failing else "healthy",
            checks={name: CheckBody.of(result) for name, result in checks.items()},
            version=self._services.readiness_version,
            deployment_mode=self._services.deployment_mode,
        )
        return answer(body, 503 if failing else 200)

    async def metrics(self) -> Response:
        return Response(self._services.render_metrics(), content_type=METRICS_CONTENT_TYPE)

    async def version(self) -> Response:
        now = rfc3339(self._services.now())
        return answer(VersionBody(version=self._services.version, request_date=now))


def system_routes(services: SystemServices) -> list[Route]:
    routes = SystemRoutes(services)
    return [
        Route(
            method="GET",
            path="/health",
            name="health",
            summary="Whether the start-up self-probe has passed",
            tag="System",
            handler=routes.health,
            successes={
                200: Success(description="Healthy", model=HealthBody),
                503: Success(description="Not yet, or not any more", model=HealthBody),
            },
        ),
        Route(
            method="GET",
            path="/readyz",
            name="readiness",
            summary="Every dependency, probed now",
            tag="System",
            handler=routes.readiness,
            successes={
                200: Success(description="Ready", model=ReadinessBody),
                503: Success(description="Not ready, or draining", model=ReadinessBody),
            },
        ),
        Route(
            method="GET",
            path="/metrics",
            name="metrics",
            summary="Prometheus text exposition",
            tag="System",
            handler=routes.metrics,
            successes={200: Success(description="Metrics", media_type="text/plain")},
        ),
        Route(
            method="GET",
            path="/version",
            name="version",
            summary="Version of the build",
            tag="System",
            handler=routes.version,
            successes={200: Success(description="Version", model=VersionBody)},
        ),
    ]


def document_route(render: Callable[[], bytes]) -> Route:
    async def document() -> Response:
        return Response(render(), content_type=JSON)

    return Route(
        method="GET",
        path="/openapi.json",
        name="openapi",
        summary="This document",
        tag="System",
        handler=document,
        successes={200: Success(description="OpenAPI 3.1", media_type=JSON)},
    )
