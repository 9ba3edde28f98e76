"""Builds MySQL and MariaDB connectors for one request."""

from fetcher.datasources.mysql.connector import MysqlConnector, MysqlSettings
from fetcher.datasources.mysql.names import normalized
from fetcher.datasources.mysql.types import Renderer
from fetcher.datasources.records import record_of, target_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher_engine import ConnectionDescriptor, Connector


class MysqlFactory:
    """MySQL tables have columns: an empty list of them is a mistake."""

    requires_fields = True

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        return MysqlConnector(
            config_name=record.config_name,
            target=lambda: target_of(record, self._settings),
            requested=normalized(self._scope.tables(record.config_name)),
            renderer=Renderer(self._scope.options),
            places=self._sessions.places(record.id),
            settings=MysqlSettings(
                statement_seconds=self._settings.query_timeout_seconds,
                lock_seconds=self._settings.lock_timeout_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
                include_views=self._settings.include_views,
            ),
        )
