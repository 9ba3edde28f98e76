"""Builds SQLite connectors for one request."""

from fetcher.datasources.records import record_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.sqlite.connector import SqliteConnector, SqliteSettings
from fetcher.datasources.sqlite.database import SqliteFolder
from fetcher.datasources.sqlite.rendering import ValueRenderer
from fetcher_engine import ConnectionDescriptor, Connector


class SqliteFactory:
    """Databases are files under one folder."""

    requires_fields = True

    def __init__(
        self,
        settings: SourceSettings,
        sessions: SessionLimits,  # noqa: ARG002 - a file bears any number of readers
        scope: RequestScope,
    ) -> None:
        """Raise ValueError where the settings name no folder."""
        if settings.sqlite_folder is None:
            raise ValueError("no folder for SQLite sources")
        self._folder = settings.sqlite_folder
        self._settings = settings
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        return SqliteConnector(
            config_name=record.config_name,
            database_name=record.database_name,
            folder=SqliteFolder(self._folder),
            renderer=ValueRenderer(self._scope.options),
            settings=SqliteSettings(
                include_views=self._settings.include_views,
                lock_seconds=self._settings.lock_timeout_seconds,
                statement_seconds=self._settings.query_timeout_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
            ),
        )
