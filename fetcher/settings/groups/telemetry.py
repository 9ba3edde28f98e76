"""Traces: whether spans are sent, where to, and under which name."""

from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from fetcher.settings.fields import Allowed, Boolean, NoEffect, SettingsGroup, Unset


class TelemetrySettings(SettingsGroup):
    TITLE: ClassVar[str] = "Traces"

    enable_telemetry: Annotated[
        Boolean,
        Field(
            description="Send spans to a collector by OTLP over HTTP. Needs the package's extra"
            " `telemetry`"
        ),
    ] = False
    otel_exporter_otlp_endpoint: Annotated[
        str,
        Field(
            description="The collector's address for OTLP over HTTP; `/v1/traces` is put behind"
            " it. Without a scheme `http`"
        ),
        Allowed("`host:port`, `http://…`, `https://…`"),
    ] = ""
    otel_exporter_otlp_endpoint_port: Annotated[
        str, Field(description="A part of the address in files of the reference"), NoEffect()
    ] = ""
    otel_exporter_otlp_headers: Annotated[
        SecretStr,
        Field(description="Headers for the collector, such as its token, with commas between them"),
        Allowed("`name=value,name=value`"),
    ] = SecretStr("")
    otel_insecure_exporter: Annotated[
        Boolean,
        Field(description="Send without TLS whatever the scheme of the address"),
    ] = False
    allow_insecure_otel: Annotated[
        str,
        Field(
            description="Any text permits an exporter without TLS where"
            " `OTEL_RESOURCE_DEPLOYMENT_ENVIRONMENT` is `production` or `prod`"
        ),
    ] = ""
    otel_library_name: Annotated[
        str, Field(description="The instrumentation scope of the spans")
    ] = "fetcher"
    otel_resource_service_name: Annotated[
        str,
        Field(description="`service.name` of the spans"),
        Unset("`fetcher`, of a worker `fetcher-worker`"),
    ] = ""
    otel_resource_deployment_environment: Annotated[
        str, Field(description="`deployment.environment.name` of the spans")
    ] = ""
    otel_trust_inbound_trace_context: Annotated[
        Boolean,
        Field(
            description="Go on with the trace that a request's `traceparent` names, also where no"
            " spans are sent; otherwise each request begins a trace of its own, or none"
        ),
    ] = False
