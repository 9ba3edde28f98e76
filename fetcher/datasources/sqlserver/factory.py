"""Builds SQL Server connectors for one request."""

from dataclasses import replace

from fetcher.datasources.records import record_of, target_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.sqlserver.connector import SqlServerConnector, SqlServerSettings
from fetcher.datasources.sqlserver.names import TableNames
from fetcher.datasources.sqlserver.rendering import Renderer
from fetcher.datasources.sqlserver.tls import TRUSTS_ALL
from fetcher.datasources.targets import Target
from fetcher.domain.connections import Connection
from fetcher_engine import ConnectionDescriptor, Connector


class SqlServerFactory:
    """SQL Server tables have columns: an empty list of them is a mistake."""

    requires_fields = True

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        return SqlServerConnector(
            config_name=record.config_name,
            target=lambda: self._target(record),
            names=TableNames(record.schema, self._scope.tables(record.config_name)),
            renderer=Renderer(self._scope.options),
            places=self._sessions.places(record.id),
            settings=SqlServerSettings(
                statement_seconds=self._settings.query_timeout_seconds,
                lock_seconds=self._settings.lock_timeout_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
                include_views=self._settings.include_views,
            ),
        )

    def _target(self, record: Connection) -> Target:
        target = target_of(record, self._settings)
        if not self._settings.sqlserver_trusts_all:
            return target
        return replace(target, metadata={**target.metadata, TRUSTS_ALL: True})
