"""TLS modes of each database type (spec rest-api 7.4); case-sensitive and exact."""

from collections.abc import Mapping

from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.errors import FetcherError

TLS_MODES: Mapping[SourceType, tuple[str, ...]] = {
    SourceType.POSTGRESQL: ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    SourceType.MYSQL: ("false", "true", "skip-verify", "preferred"),
    SourceType.MONGODB: ("disable", "false", "true", "enable", "insecure"),
    SourceType.SQL_SERVER: ("disable", "false", "true", "strict"),
    SourceType.ORACLE: ("disable", "false", "true", "enable", "verify", "skip-verify"),
    SourceType.SQLITE: (),
}
VERIFYING_TLS_MODES = frozenset({"verify-ca", "verify-full", "verify", "strict"})


def refuse_stored_tls_mode(connection: Connection) -> None:
    """Raise ``FET-0413`` before a connection is opened whose record has another type's mode.

    An empty mode is what older records have for "no TLS".
    """
    tls = connection.tls
    if tls is not None and tls.mode and tls.mode not in TLS_MODES[connection.type]:
        raise FetcherError(
            "FET-0413",
            "Invalid SSL Mode",
            f"the connection {connection.config_name} has no SSL mode of {connection.type}",
        )
