"""Builds SQLite connectors for one request."""

from fetcher.datasources.connecting import SourceFactory
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.sqlite.connector import SqliteSource
from fetcher.datasources.sqlite.database import SqliteFolder
from fetcher.datasources.sqlite.rendering import ValueRenderer
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection


class SqliteFactory(SourceFactory):
    """Databases are files under one folder. A file bears any number of readers."""

    max_sessions = None

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        """Raise ValueError where the settings name no folder."""
        super().__init__(settings, sessions, scope)
        if settings.sqlite_folder is None:
            raise ValueError("no folder for SQLite sources")
        self._folder = SqliteFolder(settings.sqlite_folder)
        # a writer's lock is waited for first
        self.discovery_seconds += settings.lock_timeout_seconds

    def _source(self, record: Connection, texts: Texts) -> SqliteSource:
        return SqliteSource(
            config_name=record.config_name,
            database_name=record.database_name,
            folder=self._folder,
            renderer=ValueRenderer(self._scope.options, texts),
            settings=self._settings.reading,
        )
