"""What can be set, with types and defaults (spec configuration 2, parsed as the decisions say)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from fetcher.settings.host_entries import checked_hosts, checked_ports
from fetcher.settings.origins import checked_origins, origins_of
from fetcher.settings.source_groups import SourceGroup

DEFAULT_WORK_QUEUE = "fetcher.extract-external-data.queue"
DEFAULT_EVENTS_EXCHANGE = "fetcher.job.events"
MAX_RESULT_BYTES = 256 * 1024 * 1024

TRUE_WORDS = frozenset({"1", "true", "t", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "f", "no", "off"})


class Role(StrEnum):
    MANAGER = "manager"
    WORKER = "worker"
    ALL = "all"

    @property
    def manages(self) -> bool:
        return self in (Role.MANAGER, Role.ALL)

    @property
    def works(self) -> bool:
        return self in (Role.WORKER, Role.ALL)


class DeploymentMode(StrEnum):
    LOCAL = "local"
    BYOC = "byoc"
    SAAS = "saas"


DEFAULT_HEALTH_PORT = 4007


def _boolean(value: object) -> object:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
        raise ValueError("must be one of true, false, 1, 0, yes, no, on, off, t, f")
    return value


def _mode(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _positive_or_default(default: float) -> Any:
    """Spec configuration 2: 0 and negative values of these counts mean the default."""

    def keep(value: object) -> object:
        if isinstance(value, str):
            try:
                number = int(value.strip())
            except ValueError:
                raise ValueError("must be a whole number") from None
            return number if number > 0 else default
        return value

    return BeforeValidator(keep)


def _drain_seconds(value: object) -> object:
    """0 means the default of 12, a negative number 1 (spec configuration 2.7)."""
    if isinstance(value, str):
        try:
            seconds = float(value.strip())
        except ValueError:
            raise ValueError("must be a number of seconds") from None
        if seconds == 0:
            return 12.0
        return 1.0 if seconds < 0 else seconds
    return value


Boolean = Annotated[bool, BeforeValidator(_boolean)]


class Settings(BaseSettings):
    """Read once, at the start; a field's name is its variable's name in lower case."""

    model_config = SettingsConfigDict(
        env_ignore_empty=True,
        extra="ignore",
        hide_input_in_errors=True,
        frozen=True,
        allow_inf_nan=False,
    )

    # process and HTTP
    env_name: str = ""
    version: str = "0.0.0"
    otel_resource_service_version: str = ""
    deployment_mode: Annotated[DeploymentMode, BeforeValidator(_mode)] = DeploymentMode.LOCAL
    log_level: str = ""
    log_encoding: str = ""
    server_address: str = ""
    server_port: Annotated[int | None, Field(ge=1, le=65535)] = None
    health_port: Annotated[int | None, Field(ge=0, le=65535)] = None
    readyz_drain_delay_sec: Annotated[float, BeforeValidator(_drain_seconds)] = 12.0
    shutdown_job_wait_sec: Annotated[float, Field(ge=0)] = 30.0
    readyz_optional_dependencies: str = "redis"
    max_pagination_limit: Annotated[int, _positive_or_default(100)] = 100
    max_pagination_month_date_range: Annotated[int, _positive_or_default(1)] = 1
    cors_allowed_origins: Annotated[str, AfterValidator(checked_origins)] = "*"
    swagger_title: str = ""
    swagger_description: str = ""
    swagger_version: str = ""
    swagger_host: str = ""
    swagger_base_path: str = ""
    swagger_schemes: str = ""

    # keys
    app_enc_key: SecretStr = SecretStr("")
    app_enc_key_version: str = "1"
    app_enc_key_previous: SecretStr = SecretStr("")

    # record store
    mongo_uri: SecretStr = SecretStr("")
    mongo_host: str = ""
    mongo_port: str = ""
    mongo_name: str = ""
    mongo_user: str = ""
    mongo_password: SecretStr = SecretStr("")
    mongo_parameters: str = ""
    mongo_max_pool_size: Annotated[int, _positive_or_default(100)] = 100

    # broker and events
    rabbitmq_uri: str = "amqp"
    rabbitmq_host: str = ""
    rabbitmq_port_amqp: Annotated[int, Field(ge=1, le=65535)] = 5672
    rabbitmq_default_user: str = ""
    rabbitmq_default_pass: SecretStr = SecretStr("")
    rabbitmq_fetcher_work_queue: str = DEFAULT_WORK_QUEUE
    rabbitmq_job_events_exchange: str = ""
    rabbitmq_numbers_of_workers: Annotated[int, _positive_or_default(5)] = 5
    rabbitmq_consumer_timeout_sec: Annotated[float, Field(gt=0)] = 1800.0
    rabbitmq_declare_topology: Boolean = False
    rabbitmq_events_require_route: Boolean = True
    rabbitmq_allow_legacy_body_signature_fallback: Boolean = False
    streaming_enabled: Boolean | None = None
    streaming_cloudevents_source: str = ""

    # object storage
    object_storage_endpoint: str = ""
    object_storage_region: str = "us-east-1"
    object_storage_bucket: str = ""
    object_storage_key_prefix: str = ""
    object_storage_access_key_id: SecretStr = SecretStr("")
    object_storage_secret_key: SecretStr = SecretStr("")
    object_storage_use_path_style: Boolean = False

    # what managers share
    redis_host: str = ""
    redis_port: Annotated[int, Field(ge=1, le=65535)] = 6379
    redis_user: str = ""
    redis_password: SecretStr = SecretStr("")
    redis_db: Annotated[int, Field(ge=0)] = 0
    redis_tls: Boolean = False
    redis_ca_cert: str = ""
    schema_cache_ttl_seconds: Annotated[float, Field(ge=0, le=86_400)] = 300.0

    # jobs and sources
    engine_max_result_bytes: Annotated[int, _positive_or_default(MAX_RESULT_BYTES)] = (
        MAX_RESULT_BYTES
    )
    engine_timeout_sec: Annotated[float, Field(gt=0)] = 300.0
    job_preflight_test: Boolean = True
    options_enabled: Boolean = True
    jobs_max_pending: Annotated[int, Field(ge=0, le=100_000)] = 10_000
    jobs_max_pending_per_product: Annotated[int, Field(ge=0, le=100_000)] = 0
    result_redirect: Boolean = False
    result_preview_enabled: Boolean | None = None
    job_lease_sec: Annotated[float, Field(gt=0)] = 60.0
    job_lease_renew_sec: Annotated[float, Field(gt=0)] = 15.0
    job_lease_margin_sec: Annotated[float, Field(gt=0)] = 10.0
    job_max_wait_sec: Annotated[float, Field(ge=0)] = 3600.0
    job_reap_sec: Annotated[float, Field(gt=0)] = 5.0
    job_dispatch_sweep_sec: Annotated[float, Field(gt=0)] = 5.0
    outbox_repair_sec: Annotated[float, Field(gt=0)] = 30.0
    datasource_sqlite_dir: Path | None = None
    datasource_max_cell_bytes: Annotated[int, Field(gt=0, le=64 * 1024 * 1024)] = 16 * 1024 * 1024
    datasource_include_views: Boolean = False
    datasource_sqlserver_trust_cert: Boolean = False
    datasource_legacy_default_schema: Boolean = False
    datasource_lock_timeout_sec: Annotated[float, Field(gt=0)] = 30.0
    datasource_query_timeout_sec: Annotated[float, Field(gt=0)] = 120.0
    datasource_host_guard: Boolean | None = None
    datasource_host_allow: Annotated[str, AfterValidator(checked_hosts)] = ""
    datasource_host_deny: Annotated[str, AfterValidator(checked_hosts)] = ""
    datasource_port_deny: Annotated[str, AfterValidator(checked_ports)] = ""
    crypto_hash_secret_key_plugin_crm: SecretStr = SecretStr("")
    crypto_encrypt_secret_key_plugin_crm: SecretStr = SecretStr("")
    datasource_groups: tuple[SourceGroup, ...] = ()
    """Not a variable of this name, but all of ``DATASOURCE_{NAME}_*``."""
    fetcher_data_dir: Path = Path("fetcher-data")
    spool_dir: str = ""

    allow_insecure_tls: Boolean = False

    # who may call
    plugin_auth_enabled: Boolean = False
    plugin_auth_address: str = ""
    plugin_auth_jwks_url: str = ""
    fetcher_access_token: SecretStr = SecretStr("")

    # a switch of a part that this version does not have yet: refused, never ignored
    multi_tenant_enabled: Boolean = False

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in: :func:`load_settings` reads the environment and the files."""
        return (init_settings,)

    @property
    def record_store_is_embedded(self) -> bool:
        return not self.mongo_host and "://" not in self.mongo_uri.get_secret_value()

    @property
    def queue_is_embedded(self) -> bool:
        return not self.rabbitmq_host

    @property
    def object_store_is_embedded(self) -> bool:
        return not self.object_storage_bucket

    @property
    def is_embedded(self) -> bool:
        """Every part is embedded: nothing outside this process is needed."""
        return (
            self.record_store_is_embedded
            and self.queue_is_embedded
            and self.object_store_is_embedded
        )

    @property
    def needs_data_folder(self) -> bool:
        return (
            self.record_store_is_embedded or self.queue_is_embedded or self.object_store_is_embedded
        )

    @property
    def spools(self) -> bool:
        """Whether a source ahead of its turn goes on to the disk. A folder ``off`` is ``./off``."""
        return self.spool_dir.strip().lower() != "off"

    @property
    def guards_hosts(self) -> bool:
        """Whether sources' hosts are judged; unless it is said, only tenants' are."""
        if self.datasource_host_guard is None:
            return self.multi_tenant_enabled
        return self.datasource_host_guard

    @property
    def previews_results(self) -> bool:
        """Whether this process opens results for callers; unless it is said, not in SaaS mode."""
        if self.result_preview_enabled is None:
            return self.deployment_mode is not DeploymentMode.SAAS
        return self.result_preview_enabled

    @property
    def events_exchange(self) -> str:
        return self.rabbitmq_job_events_exchange.strip() or DEFAULT_EVENTS_EXCHANGE

    @property
    def events_source(self) -> str:
        return self.streaming_cloudevents_source or "//fetcher/local"

    @property
    def work_queue(self) -> str:
        return self.rabbitmq_fetcher_work_queue.strip() or DEFAULT_WORK_QUEUE

    @property
    def listen_address(self) -> str:
        """``host:port``. Loopback only where everything is embedded and nothing else was said."""
        if self.server_address:
            return self.server_address
        host = "127.0.0.1" if self.is_embedded else ""
        return f"{host}:{self.server_port or 4006}"

    @property
    def health_address_port(self) -> int:
        """The port of a worker's own small server."""
        return self.health_port or DEFAULT_HEALTH_PORT

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        return origins_of(self.cors_allowed_origins)

    @property
    def listens_on_loopback(self) -> bool:
        """Whether only this machine reaches the API."""
        host = self.listen_address.rpartition(":")[0].strip().strip("[]").lower()
        return host in ("localhost", "::1") or host.startswith("127.")

    @property
    def optional_dependencies(self) -> tuple[str, ...]:
        names = (name.strip() for name in self.readyz_optional_dependencies.split(","))
        return tuple(name for name in names if name)

    @property
    def readyz_version(self) -> str:
        if self.otel_resource_service_version.strip():
            return self.otel_resource_service_version.strip()
        return self.version.strip() if self.version != "0.0.0" else "unknown"

    @model_validator(mode="after")
    def _check_leases(self) -> Self:
        if self.job_lease_renew_sec + self.job_lease_margin_sec >= self.job_lease_sec:
            raise ValueError(
                "JOB_LEASE_SEC: must be longer than JOB_LEASE_RENEW_SEC + JOB_LEASE_MARGIN_SEC"
            )
        return self
