"""Which data source types there are, and how their connectors are built (spec engine 5.1, 17.7).

Bound to one request: the records, the options and the tables that were asked for.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fetcher.datasources.postgresql.connect import Target
from fetcher.datasources.postgresql.connector import PostgresqlConnector, PostgresqlSettings
from fetcher.datasources.postgresql.names import TableNames
from fetcher.datasources.postgresql.types import Renderer
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.sqlite.connector import SqliteConnector, SqliteSettings
from fetcher.datasources.sqlite.database import SqliteFolder
from fetcher.datasources.sqlite.rendering import ValueRenderer
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions, MappedFields
from fetcher_engine import (
    ConnectionDescriptor,
    Connector,
    ConnectorFactory,
    EngineError,
    ErrorCategory,
    Limits,
    SourceFailure,
    Stage,
    TenantContext,
)

RECORD: Final = "fetcher.connection.record"
"""The host attribute that carries the whole record to its connector (spec engine 17.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What the operator decides about sources. ``reveal`` gives a record's plain password.

    Without ``sqlite_folder`` there are no SQLite sources.
    """

    reveal: Callable[[Connection], str]
    limits: Limits = field(default_factory=Limits.defaults)
    sqlite_folder: Path | None = None
    max_cell_bytes: int = 16 * 1024 * 1024
    lock_timeout_seconds: float = 30.0
    query_timeout_seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestScope:
    """What one request asks for, and how it wants values written."""

    options: JobOptions
    requested: MappedFields | None

    def tables(self, config_name: str) -> tuple[str, ...] | None:
        """The tables as they were requested; None where a request names none."""
        if self.requested is None or config_name not in self.requested:
            return None
        return tuple(self.requested[config_name])


class ResolvedConnectionStore:
    """Answers for the connections of one request; the first of a name counts."""

    def __init__(self, connections: Sequence[Connection], scope: RequestScope) -> None:
        self._descriptors: dict[str, ConnectionDescriptor] = {}
        for connection in connections:
            descriptor = descriptor_of(connection, scope.tables(connection.config_name))
            self._descriptors.setdefault(connection.config_name, descriptor)

    async def find_connection(
        self,
        tenant: TenantContext,  # noqa: ARG002 - the records were resolved for this tenant
        config_name: str,
    ) -> ConnectionDescriptor | None:
        return self._descriptors.get(config_name)


def descriptor_of(
    connection: Connection, requested: Sequence[str] | None = None
) -> ConnectionDescriptor:
    """The record as the Engine sees it, and the record itself behind a host attribute.

    A schema that was discovered for the ``requested`` tables answers for no others.
    """
    return ConnectionDescriptor(
        config_name=connection.config_name,
        type=connection.type.value,
        host=connection.host,
        port=connection.port,
        database_name=connection.database_name,
        schema=connection.schema or "",
        username=connection.username,
        ssl_mode=connection.tls.mode if connection.tls else "",
        id=str(connection.id),
        key_version=connection.encryption_key_version,
        revision=_revision(connection, requested),
        host_attributes={RECORD: connection},
    )


def _revision(connection: Connection, requested: Sequence[str] | None) -> str:
    tables = None if requested is None else sorted(requested)
    return json.dumps([connection.updated_at.isoformat(), tables])


def record_of(descriptor: ConnectionDescriptor) -> Connection:
    """Raise ``validation`` for a descriptor that did not come from :func:`descriptor_of`."""
    record = descriptor.host_attributes.get(RECORD)
    if not isinstance(record, Connection):
        raise EngineError(ErrorCategory.VALIDATION, "connection record is missing from descriptor")
    return record


class PostgresqlFactory:
    requires_fields = True

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        return PostgresqlConnector(
            config_name=record.config_name,
            target=lambda: self._target(record),
            names=TableNames(record.schema, self._scope.tables(record.config_name)),
            renderer=Renderer(self._scope.options),
            places=self._sessions.places(record.id),
            settings=PostgresqlSettings(
                statement_seconds=self._settings.query_timeout_seconds,
                lock_seconds=self._settings.lock_timeout_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
            ),
        )

    def _target(self, record: Connection) -> Target:
        return Target(
            host=record.host.strip(),
            port=record.port,
            database=record.database_name,
            user=record.username,
            password=self._password(record),
            tls=record.tls,
        )

    def _password(self, record: Connection) -> str:
        try:
            return self._settings.reveal(record)
        except Exception:  # noqa: BLE001, S110 - whatever a cipher raises, its text stays here
            pass
        raise SourceFailure(Stage.SESSION, "credential")


class SqliteFactory:
    requires_fields = True

    def __init__(self, settings: SourceSettings, folder: Path, scope: RequestScope) -> None:
        self._settings = settings
        self._folder = folder
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        return SqliteConnector(
            config_name=record.config_name,
            database_name=record.database_name,
            folder=SqliteFolder(self._folder),
            renderer=ValueRenderer(self._scope.options),
            settings=SqliteSettings(
                lock_seconds=self._settings.lock_timeout_seconds,
                statement_seconds=self._settings.query_timeout_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
            ),
        )


class SourceRegistry:
    """A type without a connector in this version has no factory."""

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        factories: dict[str, ConnectorFactory] = {
            SourceType.POSTGRESQL: PostgresqlFactory(settings, sessions, scope)
        }
        if settings.sqlite_folder is not None:
            factories[SourceType.SQLITE] = SqliteFactory(settings, settings.sqlite_folder, scope)
        self._factories: Mapping[str, ConnectorFactory] = factories

    def connector(self, datasource_type: str) -> ConnectorFactory | None:
        return self._factories.get(datasource_type)
