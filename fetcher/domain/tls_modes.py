"""TLS modes of each database type (spec rest-api 7.4); case-sensitive and exact."""

from collections.abc import Mapping
from enum import StrEnum

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


class TlsWeakness(StrEnum):
    """What a mode leaves open although it is more, or should be more, than plain text."""

    UNVERIFIED = "the server's certificate is not verified"
    OPTIONAL = "the server's certificate is not verified, and without TLS plain text is used"
    LOGIN_ONLY = "only the login is encrypted, and the server's certificate is not verified"
    READABLE = "nothing is encrypted, and the password travels in a form that can be read"


_WEAKNESSES: Mapping[SourceType, Mapping[str, TlsWeakness]] = {
    SourceType.POSTGRESQL: {
        "allow": TlsWeakness.OPTIONAL,
        "prefer": TlsWeakness.OPTIONAL,
        "require": TlsWeakness.UNVERIFIED,
    },
    SourceType.MYSQL: {
        "skip-verify": TlsWeakness.UNVERIFIED,
        "preferred": TlsWeakness.OPTIONAL,
    },
    SourceType.ORACLE: {"skip-verify": TlsWeakness.UNVERIFIED},
    SourceType.SQL_SERVER: {
        "": TlsWeakness.READABLE,
        "disable": TlsWeakness.READABLE,
        "false": TlsWeakness.LOGIN_ONLY,
    },
    SourceType.MONGODB: {"insecure": TlsWeakness.UNVERIFIED},
    SourceType.SQLITE: {},
}
"""Modes that warn (spec datasources 3.2). Plain text that nobody took for more does not."""

_VERIFY_WITH_CA = {(SourceType.POSTGRESQL, "require"), (SourceType.SQL_SERVER, "true")}

TRUSTS_SERVER = "trustServerCertificate"
"""In a connection's metadata: SQL Server's ``true`` without a CA verifies nothing."""


def tls_weakness(connection: Connection, *, sqlserver_trusts_all: bool) -> TlsWeakness | None:
    """What the operator should know of a connection's mode, None where there is nothing.

    ``sqlserver_trusts_all`` is the setting of that name, for every connection of that type.
    """
    mode = connection.tls.mode if connection.tls else ""
    if connection.tls and connection.tls.ca and (connection.type, mode) in _VERIFY_WITH_CA:
        return None
    if connection.type is SourceType.SQL_SERVER and mode == "true":
        trusts = sqlserver_trusts_all or connection.metadata.get(TRUSTS_SERVER) in ("true", True)
        return TlsWeakness.UNVERIFIED if trusts else None
    return _WEAKNESSES[connection.type].get(mode)


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
