"""Tenants, each with places of its own."""

from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from fetcher.settings.fields import (
    MANAGER,
    WORKER,
    Allowed,
    Boolean,
    SettingsGroup,
    Unset,
    positive_or_default,
)


class TenantSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Tenants"

    multi_tenant_enabled: Annotated[
        Boolean,
        Field(
            description="Many tenants in one deployment, each with the database and the virtual"
            " host that the platform's Tenant Manager names; see docs/tenants.md"
        ),
    ] = False
    metrics_tenant_label: Annotated[
        Boolean, Field(description="A worker's metrics of jobs have the label `tenant`")
    ] = False
    multi_tenant_url: Annotated[
        str,
        Field(description="Address of the Tenant Manager, before `/v1/tenants/…`"),
        Allowed("`https://…`; `http://…` with `MULTI_TENANT_ALLOW_INSECURE_HTTP`"),
        Unset("required with tenants"),
    ] = ""
    multi_tenant_allow_insecure_http: Annotated[
        Boolean,
        Field(
            description="Permits `http://` in `MULTI_TENANT_URL`; refused with"
            " `DEPLOYMENT_MODE=saas`"
        ),
    ] = False
    multi_tenant_service_api_key: Annotated[
        SecretStr,
        Field(description="What the Tenant Manager is sent as `X-API-Key`"),
        Unset("required with tenants"),
    ] = SecretStr("")
    environment_name: Annotated[
        str,
        Field(description="The platform's environment, whose tenants' events are heard"),
        Allowed("`staging`, `production`"),
        Unset("`ENV_NAME`"),
    ] = ""
    multi_tenant_redis_host: Annotated[
        str,
        Field(description="The Redis by which the platform publishes tenants' events"),
        Unset("required with tenants"),
    ] = ""
    multi_tenant_redis_port: Annotated[
        int, Field(ge=1, le=65535, description="The port of that Redis")
    ] = 6379
    multi_tenant_redis_password: Annotated[
        SecretStr, Field(description="The password of that Redis")
    ] = SecretStr("")
    multi_tenant_redis_tls: Annotated[
        Boolean, Field(description="TLS 1.2 or later to that Redis")
    ] = False
    multi_tenant_redis_ca_cert: Annotated[
        str,
        Field(
            description="The only trust roots for that Redis; with `MULTI_TENANT_REDIS_TLS=true`"
        ),
        Allowed("base64 of PEM"),
        Unset("the system's"),
    ] = ""
    multi_tenant_max_tenant_pools: Annotated[
        int,
        positive_or_default(100),
        Field(
            description="Above so many open tenants a manager closes the longest idle one at once,"
            " if it has idled for `MULTI_TENANT_IDLE_TIMEOUT_SEC`; nobody is turned away"
        ),
        Allowed("at least 1; 0 or less: the default"),
    ] = 100
    multi_tenant_max_requests: Annotated[
        int,
        positive_or_default(64),
        Field(
            le=1000,
            description="Requests of one tenant that a process works on at once; half of them may "
            "be event streams",
        ),
        Allowed("at least 1, at most 1000; 0 or less: the default"),
        MANAGER,
    ] = 64
    multi_tenant_idle_timeout_sec: Annotated[
        int,
        positive_or_default(300),
        Field(
            description="After so long without a request a manager closes a tenant; so long may"
            " its connections to MongoDB and RabbitMQ idle in any process. In seconds"
        ),
        Allowed("at least 1; 0 or less: the default"),
    ] = 300
    multi_tenant_circuit_breaker_threshold: Annotated[
        int,
        positive_or_default(5),
        Field(description="Failures in a row after which the Tenant Manager is left alone"),
        Allowed("at least 1; 0 or less: the default"),
    ] = 5
    multi_tenant_circuit_breaker_timeout_sec: Annotated[
        int,
        positive_or_default(30),
        Field(
            description="How long the Tenant Manager is left alone then, in seconds; tenants that"
            " are open go on"
        ),
        Allowed("at least 1; 0 or less: the default"),
    ] = 30
    multi_tenant_cache_ttl_sec: Annotated[
        int,
        positive_or_default(120),
        Field(
            description="How long what the Tenant Manager said of a tenant is remembered, in"
            " seconds"
        ),
        Allowed("at least 1; 0 or less: the default"),
    ] = 120
    multi_tenant_timeout: Annotated[
        int,
        positive_or_default(30),
        Field(description="How long the Tenant Manager may take to answer, in seconds"),
        Allowed("at least 1; 0 or less: the default"),
    ] = 30
    multi_tenant_reconcile_interval_sec: Annotated[
        int,
        positive_or_default(60),
        Field(
            description="How often a worker compares its tenants with the Tenant Manager's list, in"
            " seconds; one that three lists in a row leave out is stopped"
        ),
        Allowed("at least 1; 0 or less: the default"),
        WORKER,
    ] = 60
    rabbitmq_tls: Annotated[
        Boolean,
        Field(
            description="With tenants alone: their brokers are called by TLS where the Tenant"
            " Manager says nothing of it. Without tenants `RABBITMQ_URI` decides"
        ),
    ] = False
