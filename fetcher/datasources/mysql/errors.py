"""Where the driver's failures become safe words (spec datasources, section 5).

Only numbers and exception types are looked at; no text of driver or server leaves this module.
"""

import errno
import ssl
from typing import Final

from fetcher_engine import SourceFailure, Stage

INVALID_FILTER: Final = "invalid_filter"
INVALID_FILTER_VALUE: Final = "invalid_filter_value"
INVALID_TEXT: Final = "invalid_text"
INVALID_SETTING: Final = "invalid_setting"
SCHEMA_CHANGED: Final = "schema changed"
CELL_TOO_LARGE: Final = "cell_too_large"
TLS: Final = "tls"
RESET: Final = "reset"
TIMEOUT: Final = "timeout"
PROTOCOL: Final = "protocol"

LOST: Final = 2013
"""``CR_SERVER_LOST``: what the driver calls a connection that ended."""

UNKNOWN_METHOD: Final = 2059
"""``CR_AUTH_PLUGIN_CANNOT_LOAD``: the server asks for a login that the driver does not know."""

_CONNECT_REASONS: Final = {
    1040: "too_many_connections",
    1044: "forbidden",
    1045: "auth",
    1049: "database_missing",
    1053: "starting_up",
    1129: "forbidden",  # host blocked after many errors
    1130: "forbidden",  # no user from this host
    1203: "too_many_connections",
    1226: "too_many_connections",
    1227: "forbidden",
    1251: "auth",
    1524: "auth",  # plugin not loaded
    1698: "auth",
    1820: "auth",  # password expired
    1862: "auth",
    UNKNOWN_METHOD: "auth",
    3118: "auth",  # locked: MySQL
    4151: "auth",  # locked: MariaDB
}

_TLS_REASONS: Final = {2026: TLS, 3159: "tls_required"}

_ERRNO_REASONS: Final = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ETIMEDOUT: TIMEOUT,
    errno.ECONNRESET: RESET,
    errno.EPIPE: RESET,
    errno.EBADF: RESET,
}

_STATEMENT_REASONS: Final = {
    0: RESET,  # the driver's "already closed"
    1021: "out_of_resources",
    1037: "out_of_resources",
    1038: "out_of_resources",
    1041: "out_of_resources",
    1044: "forbidden",
    1053: "shut_down",
    1077: "shut_down",
    1079: "shut_down",
    1135: "out_of_resources",
    1142: "forbidden",
    1143: "forbidden",
    1153: "too_large",
    1205: "lock_timeout",
    1213: "conflict",
    1227: "forbidden",
    1300: INVALID_TEXT,
    1317: "interrupted",
    1370: "forbidden",
    1792: "forbidden",
    1927: "shut_down",
    1969: TIMEOUT,  # max_statement_time
    2006: RESET,
    2013: RESET,
    2055: RESET,
    3024: TIMEOUT,  # max_execution_time
    3572: "lock_timeout",
}

_CHANGED: Final = frozenset({1051, 1054, 1109, 1146, 1412})
"""Unknown table or column, and a definition that changed since the snapshot began."""

_UNFIT_VALUES: Final = frozenset({1264, 1292, 1366, 1411, 1525, 3854})
"""A constant that cannot be of the type it is compared as."""

_NO_SUCH_COMPARISON: Final = frozenset({1210, 1267, 1270, 1271, 3988, 4078})
"""Types or collations that cannot be compared."""


SNAPSHOT_REFUSED_CODES: Final = frozenset({1064, 1148, 1235})
"""Not understood, not allowed (by a proxy's rule), not supported."""


def connect_failure(stage: Stage, error: Exception) -> SourceFailure:
    """Why a login failed; ``stage`` is how far it had come."""
    # what was read after the handshake, as of TLS 1.3 the refusal of a certificate, is but lost
    context = error.__context__ if isinstance(error.__context__, ssl.SSLError) else error
    original = getattr(error, "original_exception", context)
    if isinstance(original, ssl.SSLError):
        return SourceFailure(Stage.TLS, TLS)
    if isinstance(original, OSError):
        return SourceFailure(stage, _ERRNO_REASONS.get(original.errno or 0, "unknown"))
    code = code_of(error)
    if code in _TLS_REASONS:
        return SourceFailure(Stage.TLS, _TLS_REASONS[code])
    if code == LOST:
        return SourceFailure(stage, RESET)
    if code is None:
        # what the driver could not make sense of: another kind of server answers there
        return SourceFailure(stage, PROTOCOL)
    return SourceFailure(Stage.AUTH, _CONNECT_REASONS.get(code, "unknown"))


def statement_failure(
    stage: Stage, error: Exception, *, table: str | None, filtered: bool = False
) -> SourceFailure:
    """Why a statement, or the rest of its rows, failed. ``filtered``: it holds filters' values."""
    code = code_of(error)
    if code is None:
        reason = RESET if isinstance(error, OSError) else PROTOCOL
        return SourceFailure(stage, reason, table=table)
    if code in _CHANGED and table is not None:
        return SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=table)
    if filtered and code in _UNFIT_VALUES:
        return SourceFailure(Stage.QUERY, INVALID_FILTER_VALUE, table=table)
    if filtered and code in _NO_SUCH_COMPARISON:
        return SourceFailure(Stage.QUERY, INVALID_FILTER, table=table)
    return SourceFailure(stage, _STATEMENT_REASONS.get(code, "unknown"), table=table)


def code_of(error: Exception) -> int | None:
    """The server's or the driver's error number, where there is one."""
    code = error.args[0] if error.args else None
    return code if type(code) is int and not isinstance(error, OSError) else None
