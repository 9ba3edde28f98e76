"""Builds Oracle connectors for one request."""

from fetcher.datasources.connecting import SourceFactory
from fetcher.datasources.oracle.connector import OracleSource
from fetcher.datasources.oracle.names import TableNames, requested_fields
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.records import target_of
from fetcher.datasources.snapshots import SnapshotNote
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection


class OracleFactory(SourceFactory):
    def _source(self, record: Connection, texts: Texts, snapshot: SnapshotNote) -> OracleSource:
        requested = requested_fields(self._scope.requested, record.config_name)
        return OracleSource(
            config_name=record.config_name,
            target=lambda: target_of(record, self._settings),
            names=TableNames(
                record.schema, requested, keeps_default=self._settings.keeps_default_schema
            ),
            renderer=ValueRenderer(self._scope.options, texts),
            settings=self._settings.reading,
            on_refusal=snapshot,
        )
