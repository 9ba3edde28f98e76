"""The process: what it is called, where it listens, how it ends, what it logs."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from fetcher.settings.fields import (
    MANAGER,
    MOST_SECONDS,
    WORKER,
    Allowed,
    DeploymentMode,
    Example,
    SettingsGroup,
    Unset,
    drain_seconds,
    port_or_none,
    trimmed_lower,
)


class ProcessSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Process"

    env_name: Annotated[
        str,
        Field(
            description="The environment's name. `production`, `prod`, `staging`, `stage` and `uat`"
            " are like production: they log as JSON on a terminal too, and from `info` on. Unset or"
            " `local`: a file `.env` in the working directory is read too, beneath the environment"
        ),
        Unset("`local`"),
        Example("production"),
    ] = ""
    deployment_mode: Annotated[
        DeploymentMode,
        BeforeValidator(trimmed_lower),
        Field(
            description="`saas` refuses every dependency without TLS, embedded parts and SQLite"
            " sources; only `local` has embedded parts"
        ),
        Allowed("`local`, `byoc`, `saas`, in any case"),
    ] = DeploymentMode.LOCAL
    version: Annotated[str, Field(description="What `/version` says")] = "0.0.0"
    otel_resource_service_version: Annotated[
        str,
        Field(description="What `/readyz` says as version, and `service.version` of spans"),
        Unset("`VERSION`, else `unknown`"),
    ] = ""
    server_address: Annotated[
        str,
        Field(description="Where the API listens; without a host on all interfaces"),
        Allowed("`host:port` or `:port`"),
        MANAGER,
        Unset("`:4006`; `127.0.0.1:4006` where every part is embedded"),
        Example(":4006"),
    ] = ""
    server_port: Annotated[
        int | None,
        Field(ge=1, le=65535, description="The API's port, where `SERVER_ADDRESS` is not set"),
        MANAGER,
        Unset("4006"),
    ] = None
    health_port: Annotated[
        int | None,
        BeforeValidator(port_or_none),
        Field(
            description="Port of a worker's `/health`, `/readyz`, `/metrics` and `/version`, on all"
            " interfaces"
        ),
        Allowed("1 to 65535; another number: the default"),
        WORKER,
        Unset("4007"),
        Example("4007"),
    ] = None
    readyz_drain_delay_sec: Annotated[
        float,
        BeforeValidator(drain_seconds),
        Field(
            le=MOST_SECONDS,
            description="How long requests are still served after the first SIGTERM, with `/readyz`"
            " 503",
        ),
        Allowed("seconds; 0: the default; less: 1"),
    ] = 12.0
    shutdown_job_wait_sec: Annotated[
        float,
        Field(
            ge=0,
            le=MOST_SECONDS,
            description="How long running jobs may go on after that, in seconds",
        ),
    ] = 30.0
    readyz_optional_dependencies: Annotated[
        str,
        Field(
            description="Dependencies that are told of and decide neither `/readyz` nor `/health`,"
            " with commas between them. For managers we recommend `redis,rabbitmq`: jobs are"
            " dispatched from their record. With tenants there is `multi_tenant_redis` too"
        ),
    ] = "redis"


class LogSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Logs"

    log_level: Annotated[
        str,
        Field(description="What is logged"),
        Allowed("`debug`, `info`, `warn`, `error`, `dpanic`, `panic`, `fatal`, in any case"),
        Unset("`debug`; with an `ENV_NAME` that is like production `info`"),
    ] = ""
    log_encoding: Annotated[
        str,
        Field(description="The form of the log"),
        Allowed("`json`, `console`"),
        Unset("`console` on a terminal, else `json`; see `ENV_NAME`"),
    ] = ""
