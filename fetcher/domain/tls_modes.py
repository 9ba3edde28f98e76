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


def tls_mode_problem(source_type: SourceType, mode: str) -> str | None:
    """Why a mode is none of the type's, with those that are; None for one that is.

    A mode that is right but for its case or blanks around it is named too.
    """
    modes = TLS_MODES[source_type]
    if mode in modes:
        return None
    known = ", ".join(f'"{each}"' for each in sorted(modes)) or "none"
    meant = mode.strip().lower()
    hint = f', did you mean "{meant}"?' if meant in modes else ""
    return f"not an SSL mode of {source_type}{hint} (valid modes for {source_type}: {known})"


def refuse_stored_tls_mode(connection: Connection) -> None:
    """Raise ``FET-0413`` before a connection is opened whose record has another type's mode.

    An empty mode is what older records have for "no TLS".
    """
    tls = connection.tls
    if tls is None or not tls.mode:
        return
    if problem := tls_mode_problem(connection.type, tls.mode):
        message = f"the SSL mode of the connection {connection.config_name} is {problem}"
        raise FetcherError("FET-0413", "Invalid SSL Mode", message)
