"""Which data source types there are, and how their connectors are built (spec engine 5.1, 17.7).

Bound to one request: the options and the tables that were asked for.
"""

from collections.abc import Mapping

from fetcher.datasources.postgresql.factory import PostgresqlFactory
from fetcher.datasources.reticence import ReticentFactory
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.sqlite.factory import SqliteFactory
from fetcher.domain.connections import SourceType
from fetcher_engine import ConnectorFactory


class SourceRegistry:
    """A type without a connector in this version has no factory."""

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        factories: dict[str, ConnectorFactory] = {
            SourceType.POSTGRESQL: PostgresqlFactory(settings, sessions, scope)
        }
        if settings.sqlite_folder is not None:
            factories[SourceType.SQLITE] = SqliteFactory(settings, settings.sqlite_folder, scope)
        if settings.judge is not None:
            factories = {name: ReticentFactory(each) for name, each in factories.items()}
        self._factories: Mapping[str, ConnectorFactory] = factories

    def connector(self, datasource_type: str) -> ConnectorFactory | None:
        return self._factories.get(datasource_type)
