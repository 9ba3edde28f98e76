"""redis-py as we use it: RESP2, a bounded pool, no retry of its own."""

import ssl
from collections.abc import Mapping
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Connection, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from fetcher.adapters.redis.address import RedisAddress

MAX_CONNECTIONS: Final = 10


class _TlsConnection(Connection):
    """With a context of ours: redis-py's own adds given trust roots to the system's."""

    def __init__(self, *, tls_context: ssl.SSLContext, **settings: Any) -> None:
        super().__init__(**settings)
        self._tls_context = tls_context

    def _connection_arguments(self) -> Mapping[str, Any]:
        return {**super()._connection_arguments(), "ssl": self._tls_context}


def connection_class(address: RedisAddress) -> tuple[type[Connection], dict[str, Any]]:
    """What connects there, and with what."""
    settings: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "username": address.user or None,
        "password": address.password or None,
        "db": address.database,
        "protocol": 2,
        "driver_info": None,
        "socket_timeout": None,
        "socket_connect_timeout": None,
        "retry": Retry(NoBackoff(), 0),
    }
    if not address.tls:
        return Connection, settings
    return _TlsConnection, {**settings, "tls_context": address.tls_context()}


def new_client(address: RedisAddress) -> Redis:
    """Connects when it is used. Deadlines are the caller's, over connecting and everything.

    To be made and closed on the asyncio side.
    """
    kind, settings = connection_class(address)
    pool = BlockingConnectionPool(
        connection_class=kind, max_connections=MAX_CONNECTIONS, timeout=None, **settings
    )
    return Redis.from_pool(pool)
