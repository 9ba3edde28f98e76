"""Which data source types there are, and how their connectors are built (spec engine 5.1, 17.7).

Bound to one request: the options and the tables that were asked for. A type whose driver is not
installed, or that is off, has connectors that say so: each driver is an optional extra of the
package.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, TypeAlias, cast

from fetcher.datasources.missing_driver import MissingDriverFactory, TypeOffFactory
from fetcher.datasources.records import PLUGIN_CRM
from fetcher.datasources.reticence import ReticentFactory
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.traced import TracedFactory
from fetcher.domain.connections import SourceType
from fetcher.ports import UNTRACED, Tracer
from fetcher_engine import ConnectorFactory

MakeFactory: TypeAlias = Callable[[SourceSettings, SessionLimits, RequestScope], ConnectorFactory]

_FACTORIES: Final[Mapping[str, str]] = {
    SourceType.POSTGRESQL: "postgresql.factory:PostgresqlFactory",
    SourceType.MYSQL: "mysql.factory:MysqlFactory",
    SourceType.MONGODB: "mongodb.factory:MongodbFactory",
    SourceType.SQL_SERVER: "sqlserver.factory:SqlServerFactory",
    SourceType.ORACLE: "oracle.factory:OracleFactory",
    SourceType.SQLITE: "sqlite.factory:SqliteFactory",
    PLUGIN_CRM: "plugin_crm.factory:PluginCrmFactory",
}
"""By type, where in this package its factory is."""


def load_connectors() -> None:
    """Import every connector and its driver. Blocking: a first job should not wait for that."""
    for place in _FACTORIES.values():
        _imported(place)


class SourceRegistry:
    """Implements the Engine's registry for one request."""

    def __init__(
        self,
        settings: SourceSettings,
        sessions: SessionLimits,
        scope: RequestScope,
        tracer: Tracer = UNTRACED,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope
        self._tracer = tracer
        self._made: dict[str, ConnectorFactory] = {}

    def connector(self, datasource_type: str) -> ConnectorFactory | None:
        if datasource_type not in _FACTORIES:
            return None
        if self._is_off(datasource_type):
            return TypeOffFactory()
        if datasource_type not in self._made:
            self._made[datasource_type] = self._make(datasource_type)
        return self._made[datasource_type]

    def _is_off(self, datasource_type: str) -> bool:
        return datasource_type == SourceType.SQLITE and self._settings.sqlite_folder is None

    def _make(self, datasource_type: str) -> ConnectorFactory:
        make = _imported(_FACTORIES[datasource_type])
        factory = make(self._settings, self._sessions, self._scope)
        if self._settings.judge is not None:
            factory = ReticentFactory(factory)
        return factory if self._tracer is UNTRACED else TracedFactory(factory, self._tracer)


def _imported(place: str) -> MakeFactory:
    module, _, name = place.partition(":")
    try:
        return cast("MakeFactory", getattr(import_module(f"fetcher.datasources.{module}"), name))
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("fetcher."):
            raise
        return MissingDriverFactory
