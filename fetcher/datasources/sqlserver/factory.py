"""Builds SQL Server connectors for one request."""

from dataclasses import replace

from fetcher.datasources.connecting import SourceFactory
from fetcher.datasources.records import target_of
from fetcher.datasources.snapshots import SnapshotNote
from fetcher.datasources.sqlserver.connector import SqlServerSource
from fetcher.datasources.sqlserver.names import TableNames
from fetcher.datasources.sqlserver.rendering import Renderer
from fetcher.datasources.targets import Target
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection
from fetcher.domain.tls_modes import TRUSTS_SERVER


class SqlServerFactory(SourceFactory):
    def _source(self, record: Connection, texts: Texts, snapshot: SnapshotNote) -> SqlServerSource:
        return SqlServerSource(
            config_name=record.config_name,
            target=lambda: self._target(record),
            names=TableNames(
                record.schema,
                self._scope.tables(record.config_name),
                keeps_default=self._settings.keeps_default_schema,
            ),
            renderer=Renderer(self._scope.options, texts),
            settings=self._settings.reading,
            on_refusal=snapshot,
        )

    def _target(self, record: Connection) -> Target:
        target = target_of(record, self._settings)
        if not self._settings.sqlserver_trusts_all:
            return target
        return replace(target, metadata={**target.metadata, TRUSTS_SERVER: True})
