"""Connections whose server nobody proves, told to the operator (spec datasources 3.2)."""

from datetime import datetime

import structlog

from fetcher.datasources.told_once import ToldOnce
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId
from fetcher.domain.tls_modes import tls_weakness

log = structlog.get_logger(__name__)


class TlsWarnings:
    """One warning a connection and its change, however often it is used by this process."""

    def __init__(self, *, sqlserver_trusts_all: bool = False) -> None:
        self._sqlserver_trusts_all = sqlserver_trusts_all
        self._seen = ToldOnce[tuple[ConnectionId, datetime]]()

    def look_at(self, connection: Connection) -> None:
        """Warn of a connection that is about to be used, the first time."""
        if not self._seen.is_news((connection.id, connection.updated_at)):
            return
        weakness = tls_weakness(connection, sqlserver_trusts_all=self._sqlserver_trusts_all)
        if weakness is not None:
            log.warning(
                "source_tls_is_weak",
                connection_id=str(connection.id),
                config_name=connection.config_name,
                type=connection.type.value,
                mode=connection.tls.mode if connection.tls else "",
                weakness=weakness.value,
            )
