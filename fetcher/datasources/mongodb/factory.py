"""Builds MongoDB connectors for one request."""

from fetcher.datasources.mongodb.bson_json import BsonWriter
from fetcher.datasources.mongodb.connector import MongoConnector, MongoSettings, auth_source_of
from fetcher.datasources.mongodb.layout import OwnCollections
from fetcher.datasources.records import record_of, target_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher_engine import ConnectionDescriptor, Connector

MAX_SESSIONS = 100


class MongodbFactory:
    """Documents have no columns: an empty list of fields is whole documents."""

    requires_fields = False

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        requested = self._scope.requested
        return MongoConnector(
            target=lambda: target_of(record, self._settings),
            auth_source=auth_source_of(
                record.metadata,
                database=record.database_name,
                is_internal=not record.encryption_key_version,
            ),
            layout=OwnCollections(
                config_name=record.config_name,
                requested=None if requested is None else requested.get(record.config_name),
                new_writer=lambda: BsonWriter(
                    self._scope.options, max_cell_bytes=self._settings.max_cell_bytes
                ),
            ),
            places=self._sessions.places(record.id, most=MAX_SESSIONS),
            settings=MongoSettings(statement_seconds=self._settings.query_timeout_seconds),
        )
