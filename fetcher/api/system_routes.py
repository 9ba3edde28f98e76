"""Health, readiness, metrics and version (spec configuration 5 to 8), without authentication."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from quart import Response

from fetcher.api.metrics import METRICS_CONTENT_TYPE
from fetcher.api.models.system import (
    DRAINING,
    CheckBody,
    HealthBody,
    ReadinessBody,
    TenantReadinessBody,
    TenantReadyBody,
    TenantUnreadyBody,
    VersionBody,
)
from fetcher.api.routing import JSON, Parameter, Route, Success, answer
from fetcher.api.services import SystemServices
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import ProbeResult, ProbeStatus
from fetcher.queries.tenant_readiness import Found

FAILING = frozenset({ProbeStatus.DOWN, ProbeStatus.DEGRADED})
_OF_NOBODY = frozenset({400, 503})
"""Statuses of a question that names no tenant; 503 while the process drains."""


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
        checks = self._counted(DRAINING if report.draining else report.checks)
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

    async def tenant_readiness(self, id: str = "") -> Response:  # noqa: A002 - the route template's name
        """Without tenants there is none to look at, whatever the id and the drain."""
        if self._services.tenant_readiness is None:
            return answer(TenantReadinessBody(error="multi-tenant mode is disabled"), 400)
        report = await self._services.tenant_readiness(id)
        match report.found:
            case Found.CHECKED:
                return self._of_tenant(id, report.checks)
            case Found.DRAINING:
                return self._of_tenant(None, DRAINING)
            case Found.NO_ID:
                return answer(TenantReadinessBody(error=report.error), 400)
            case Found.UNKNOWN:
                return answer(TenantReadinessBody(error=report.error, tenant_id=id), 404)
            case Found.UNTOLD:
                return answer(TenantUnreadyBody(error=report.error), 503)
            case _:
                assert_never(report.found)

    def _of_tenant(self, tenant_id: str | None, results: Mapping[str, ProbeResult]) -> Response:
        """Counted by the dependencies' plain names."""
        checks = {name: CheckBody.of(each) for name, each in self._counted(results).items()}
        version, mode = self._services.readiness_version, self._services.deployment_mode
        failing = any(result.status in FAILING for result in results.values())
        if failing or tenant_id is None:
            unready = TenantUnreadyBody(
                status="unhealthy",
                checks=checks,
                version=version,
                deployment_mode=mode,
                tenant_id=tenant_id,
            )
            return answer(unready, 503)
        ready = TenantReadyBody(
            status="healthy",
            checks=checks,
            version=version,
            deployment_mode=mode,
            tenant_id=tenant_id,
        )
        return answer(ready)

    def _counted(self, checks: Mapping[str, ProbeResult]) -> Mapping[str, ProbeResult]:
        for name, result in checks.items():
            self._services.readiness_metrics.observe(name, result)
        return checks

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
        *_tenant_routes(routes, has_tenants=services.tenant_readiness is not None),
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


def _tenant_routes(routes: SystemRoutes, *, has_tenants: bool) -> list[Route]:
    refused = Success(description="Multi-tenant mode is off", model=TenantReadinessBody)
    successes = {
        200: Success(description="Ready", model=TenantReadyBody),
        400: Success(description="No id", model=TenantReadinessBody),
        404: Success(description="No tenant of this service has the id", model=TenantReadinessBody),
        503: Success(
            description="Not ready; or draining, or the Tenant Manager cannot tell, or too many "
            "tenants are being looked at",
            model=TenantUnreadyBody,
        ),
    }
    of_tenant = Route(
        method="GET",
        path="/readyz/tenant/{id}",
        name="tenant_readiness",
        summary="The dependencies of one tenant, probed now"
        if has_tenants
        else "The dependencies of one tenant; refused, since this process has no tenants",
        tag="System",
        handler=routes.tenant_readiness,
        successes=successes if has_tenants else {400: refused},
        parameters=[Parameter(name="id", place="path", description="A tenant's id", required=True)],
    )
    of_nobody = replace(
        of_tenant,
        path="/readyz/tenant",
        name="nobodys_readiness",
        summary="Refused: the path names no tenant",
        successes={
            status: each for status, each in of_tenant.successes.items() if status in _OF_NOBODY
        },
        parameters=(),
    )
    return [of_tenant, of_nobody]


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
