"""Whether and where spans are sent. Off, nothing of OpenTelemetry is imported."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fetcher.bootstrap.versions import running_version
from fetcher.domain.errors import StartRefused
from fetcher.ports import UNTRACED, Tracer
from fetcher.settings import Role, Settings
from fetcher.settings.telemetry_rules import collector_url, header_texts


@asynccontextmanager
async def open_tracer(settings: Settings, role: Role) -> AsyncIterator[Tracer]:
    """Raise StartRefused where spans are to be sent and the package's extra is not installed."""
    if not settings.enable_telemetry:
        yield UNTRACED
        return
    try:
        from fetcher.adapters.telemetry.export import (  # noqa: PLC0415 - an extra, off by default
            Collector,
            Origin,
            open_traces,
        )
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("opentelemetry"):
            raise
        raise StartRefused(
            ["ENABLE_TELEMETRY: needs the extra: in a checkout, pip install '.[telemetry]'"]
        ) from None
    headers = dict(text.split("=", 1) for text in header_texts(settings))
    service = "fetcher" if role.manages else "fetcher-worker"
    collector = Collector(base_url=collector_url(settings), headers=headers)
    origin = Origin(
        service_name=settings.otel_resource_service_name.strip() or service,
        service_version=running_version(settings),
        environment=settings.otel_resource_deployment_environment.strip(),
        library_name=settings.otel_library_name.strip() or "fetcher",
    )
    async with open_traces(collector, origin) as tracer:
        yield tracer
