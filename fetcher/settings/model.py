"""All settings, typed and with defaults (spec configuration 2, parsed as the decisions say).

A setting is a field of a group in :mod:`fetcher.settings.groups`, with its description; after
adding one run ``make docs``.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from fetcher.settings.fields import DeploymentMode, ReadBy, Role, SettingsGroup, plain_digits
from fetcher.settings.groups.broker import (
    DEFAULT_EVENTS_EXCHANGE,
    DEFAULT_WORK_QUEUE,
    BrokerSettings,
    EventSettings,
)
from fetcher.settings.groups.cache import CacheSettings
from fetcher.settings.groups.callers import CallerSettings, DocumentSettings
from fetcher.settings.groups.jobs import JobSettings
from fetcher.settings.groups.keys import KeySettings
from fetcher.settings.groups.process import LogSettings, ProcessSettings
from fetcher.settings.groups.retention import RetentionSettings
from fetcher.settings.groups.sources import SourceSettings
from fetcher.settings.groups.stores import (
    EmbeddedSettings,
    ObjectStorageSettings,
    RecordStoreSettings,
)
from fetcher.settings.groups.telemetry import TelemetrySettings
from fetcher.settings.groups.tenants import TenantSettings
from fetcher.settings.origins import origins_of
from fetcher.settings.shown_values import shown_value

__all__ = ["GROUPS", "DeploymentMode", "Role", "Settings"]

DEFAULT_HEALTH_PORT: Final = 4007
_NUMBERS: Final = (int, float, int | None, float | None)
UNKNOWN_VERSION: Final = "unknown"
"""What `/readyz` says where no version is set (Wire)."""

GROUPS: Final[tuple[type[SettingsGroup], ...]] = (
    ProcessSettings,
    LogSettings,
    TelemetrySettings,
    KeySettings,
    CallerSettings,
    RecordStoreSettings,
    BrokerSettings,
    EventSettings,
    ObjectStorageSettings,
    CacheSettings,
    EmbeddedSettings,
    JobSettings,
    RetentionSettings,
    SourceSettings,
    DocumentSettings,
    TenantSettings,
)
"""In the order of the documents."""


class Settings(
    # pydantic takes the fields of the last one first: the order of GROUPS, from behind
    TenantSettings,
    DocumentSettings,
    SourceSettings,
    RetentionSettings,
    JobSettings,
    EmbeddedSettings,
    CacheSettings,
    ObjectStorageSettings,
    EventSettings,
    BrokerSettings,
    RecordStoreSettings,
    CallerSettings,
    KeySettings,
    TelemetrySettings,
    LogSettings,
    ProcessSettings,
    BaseSettings,
):
    """Read once, at the start; a field's name is its variable's name in lower case."""

    model_config = SettingsConfigDict(
        env_ignore_empty=True,
        extra="ignore",
        hide_input_in_errors=True,
        frozen=True,
        allow_inf_nan=False,
    )

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

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """As it may be shown, of the fields alone."""
        for name in type(self).model_fields:
            yield name, shown_value(name.upper(), getattr(self, name))

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: object, info: ValidationInfo) -> object:
        is_number = cls.model_fields[str(info.field_name)].annotation in _NUMBERS
        return plain_digits(value) if is_number else value

    @property
    def record_store_is_embedded(self) -> bool:
        """Never with tenants: each has a database of its own."""
        if self.multi_tenant_enabled:
            return False
        if self.record_store is not None:
            return self.record_store == "sqlite"
        return not self.mongo_host and "://" not in self.mongo_uri.get_secret_value()

    @property
    def queue_is_embedded(self) -> bool:
        """Never with tenants: each has a virtual host of its own."""
        if self.multi_tenant_enabled:
            return False
        if self.queue_backend is not None:
            return self.queue_backend == "memory"
        return not self.rabbitmq_host

    @property
    def object_store_is_embedded(self) -> bool:
        """Never with tenants, who share a bucket."""
        if self.multi_tenant_enabled:
            return False
        if self.object_store is not None:
            return self.object_store == "folder"
        return not self.object_storage_bucket

    @property
    def uses_redis(self) -> bool:
        """Whether managers share what they remember."""
        if self.cache_backend is not None:
            return self.cache_backend == "redis"
        return bool(self.redis_host)

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
    def has_sqlite_sources(self) -> bool:
        """Whether there is a folder for files of SQLite; without one that type is off."""
        return self.datasource_sqlite_dir is not None or self.needs_data_folder

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
    def allows_plaintext(self) -> bool:
        """Whether a tenant's own places may be without TLS: never in SaaS mode."""
        return self.allow_insecure_tls and self.deployment_mode is not DeploymentMode.SAAS

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

    def has_health_port(self, role: Role) -> bool:
        """A worker's own port; with everything embedded only where it was asked for."""
        if self.health_port is not None:
            return role.works
        return role is Role.WORKER or (role is Role.ALL and not self.is_embedded)

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
        return self.version.strip() if self.version != "0.0.0" else UNKNOWN_VERSION


def is_read_by(role: Role, field_name: str) -> bool:
    """Whether a process of this role reads the setting at all."""
    marks = [
        mark for mark in Settings.model_fields[field_name].metadata if isinstance(mark, ReadBy)
    ]
    return role is Role.ALL or all(mark.role is role for mark in marks)
