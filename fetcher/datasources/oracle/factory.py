"""Builds Oracle connectors for one request."""

from fetcher.datasources.oracle.connector import OracleConnector, OracleSettings
from fetcher.datasources.oracle.names import TableNames, requested_fields
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.records import record_of, target_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher_engine import ConnectionDescriptor, Connector


class OracleFactory:
    """Oracle's tables have columns: an empty list of them is a mistake."""

    requires_fields = True

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        requested = requested_fields(self._scope.requested, record.config_name)
        return OracleConnector(
            config_name=record.config_name,
            target=lambda: target_of(record, self._settings),
            names=TableNames(record.schema, requested),
            renderer=ValueRenderer(self._scope.options),
            places=self._sessions.places(record.id),
            settings=OracleSettings(
                statement_seconds=self._settings.query_timeout_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
                include_views=self._settings.include_views,
            ),
        )
