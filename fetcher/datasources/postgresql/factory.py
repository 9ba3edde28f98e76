"""Builds PostgreSQL connectors for one request."""

from fetcher.datasources.connecting import SourceFactory
from fetcher.datasources.postgresql.connector import PostgresqlSource
from fetcher.datasources.postgresql.names import TableNames
from fetcher.datasources.postgresql.types import Renderer
from fetcher.datasources.records import target_of
from fetcher.datasources.snapshots import SnapshotNote
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection


class PostgresqlFactory(SourceFactory):
    def _source(
        self,
        record: Connection,
        texts: Texts,
        snapshot: SnapshotNote,  # noqa: ARG002 - the connector finds out
    ) -> PostgresqlSource:
        return PostgresqlSource(
            config_name=record.config_name,
            target=lambda: target_of(record, self._settings),
            names=TableNames(
                record.schema or record.listed_schema,
                self._scope.tables(record.config_name),
                keeps_default=self._settings.keeps_default_schema or not record.schema,
            ),
            renderer=Renderer(self._scope.options, texts),
            settings=self._settings.reading,
        )
