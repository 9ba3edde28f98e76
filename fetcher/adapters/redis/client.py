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


def new_client(address: RedisAddress) -> Redis:
    """Connects when it is used. Deadlines are the caller's, over connecting and everything.

    To be made and closed on the asyncio side.
    """
    tls: dict[str, Any] = {}
    if address.tls:
        tls = {"connection_class": _TlsConnection, "tls_context": address.tls_context()}
    pool = BlockingConnectionPool(
        max_connections=MAX_CONNECTIONS,
        timeout=None,
        host=address.host,
        port=address.port,
        username=address.user or None,
        password=address.password or None,
        db=address.database,
        protocol=2,
        driver_info=None,
        socket_timeout=None,
        socket_connect_timeout=None,
        retry=Retry(NoBackoff(), 0),
        **tls,
    )
    return Redis.from_pool(pool)
