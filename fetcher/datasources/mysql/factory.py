"""Builds MySQL and MariaDB connectors for one request."""

from fetcher.datasources.connecting import SourceFactory
from fetcher.datasources.mysql.connector import MysqlSource
from fetcher.datasources.mysql.names import normalized
from fetcher.datasources.mysql.types import Renderer
from fetcher.datasources.records import target_of
from fetcher.datasources.snapshots import SnapshotNote
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection


class MysqlFactory(SourceFactory):
    def _source(
        self,
        record: Connection,
        texts: Texts,
        snapshot: SnapshotNote,  # noqa: ARG002 - the connector finds out
    ) -> MysqlSource:
        return MysqlSource(
            config_name=record.config_name,
            target=lambda: target_of(record, self._settings),
            requested=normalized(self._scope.tables(record.config_name)),
            renderer=Renderer(self._scope.options, texts),
            settings=self._settings.reading,
        )
