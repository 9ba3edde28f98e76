"""Builds SQLite connectors for one request."""

from fetcher.datasources.connecting import DISCOVERY_SECONDS, SourceConnector
from fetcher.datasources.records import record_of
from fetcher.datasources.session_supply import OwnSessions
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.sqlite.connect import SqliteFolder
from fetcher.datasources.sqlite.connector import SqliteSource
from fetcher.datasources.sqlite.session import Session
from fetcher.datasources.sqlite.types import ValueRenderer
from fetcher.datasources.texts import Texts
from fetcher_engine import ConnectionDescriptor


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
        self._folder = SqliteFolder(settings.sqlite_folder)
        self._settings = settings
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> SourceConnector[Session]:
        record = record_of(descriptor)
        texts = Texts(replaces=record.replaces_invalid_text)
        source = SqliteSource(
            config_name=record.config_name,
            database_name=record.database_name,
            folder=self._folder,
            renderer=ValueRenderer(self._scope.options, texts),
            settings=self._settings.reading,
        )
        return SourceConnector(
            source,
            OwnSessions(source),
            # a writer's lock is waited for first
            discovery_seconds=DISCOVERY_SECONDS + self._settings.lock_timeout_seconds,
            texts=texts,
        )
