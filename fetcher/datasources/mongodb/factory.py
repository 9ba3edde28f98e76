"""Builds MongoDB connectors for one request."""

from collections.abc import Callable, Mapping, Sequence

from fetcher.datasources.connecting import SourceFactory
from fetcher.datasources.mongodb.bson_json import BsonWriter
from fetcher.datasources.mongodb.client import SOCKETS_OF_SESSION
from fetcher.datasources.mongodb.connector import MongoSource, auth_source_of
from fetcher.datasources.mongodb.layout import Layout, OwnCollections, RowWriter
from fetcher.datasources.records import target_of
from fetcher.datasources.snapshots import SnapshotNote
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection

MAX_SOCKETS = 100
"""Of one connection in this process."""


class MongodbFactory(SourceFactory):
    """Documents have no columns: an empty list of fields is whole documents."""

    requires_fields = False
    max_sessions = MAX_SOCKETS // SOCKETS_OF_SESSION

    def _source(self, record: Connection, texts: Texts, snapshot: SnapshotNote) -> MongoSource:
        def new_writer() -> RowWriter:
            return BsonWriter(
                self._scope.options, max_cell_bytes=self._settings.max_cell_bytes, texts=texts
            )

        return MongoSource(
            target=lambda: target_of(record, self._settings),
            database_name=record.database_name,
            auth_source=auth_source_of(
                record.metadata, database=record.database_name, is_internal=record.is_internal
            ),
            layout=self._layout(record, new_writer),
            settings=self._settings.reading,
            on_refusal=snapshot,
        )

    def _layout(self, record: Connection, new_writer: Callable[[], RowWriter]) -> Layout:
        return OwnCollections(
            config_name=record.config_name,
            requested=self._requested(record),
            wanted=self._scope.fields(record.config_name),
            new_writer=new_writer,
        )

    def _requested(self, record: Connection) -> Mapping[str, Sequence[str]] | None:
        requested = self._scope.requested
        return None if requested is None else requested.get(record.config_name)
