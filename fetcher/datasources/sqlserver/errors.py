"""Where python-tds's failures become safe words (spec datasources, section 5).

Only numbers and types are looked at; nothing of a server's or driver's text leaves this module.
"""

import ssl
from collections.abc import Sequence
from typing import Final

from pytds import ClosedConnectionError  # type: ignore[import-untyped]

from fetcher.datasources.sqlserver.wire import AnswerTooLarge
from fetcher_engine import SourceFailure, Stage

INVALID_FILTER: Final = "invalid_filter"
INVALID_FILTER_VALUE: Final = "invalid_filter_value"
INVALID_TEXT: Final = "invalid_text"
SCHEMA_CHANGED: Final = "schema changed"
CELL_TOO_LARGE: Final = "cell_too_large"
RESET: Final = "reset"
TIMEOUT: Final = "timeout"
PROTOCOL: Final = "protocol"

_LOGIN_REASONS: Final = {
    18456: "auth",
    18452: "auth",
    18470: "auth",
    18486: "auth",
    18487: "auth",
    18488: "auth",
    4060: "database_missing",
    4064: "database_missing",
    911: "database_missing",
    916: "forbidden",
    17809: "too_many_connections",
    10928: "too_many_connections",
    10929: "too_many_connections",
    18401: "starting_up",
    40613: "starting_up",
}

_STATEMENT_REASONS: Final = {
    1222: "lock_timeout",
    1205: "conflict",
    3960: "conflict",
    3961: "conflict",
    229: "forbidden",
    230: "forbidden",
    297: "forbidden",
    916: "forbidden",
    701: "out_of_resources",
    802: "out_of_resources",
    1105: "out_of_resources",
    8645: "out_of_resources",
    8623: "too_large",
    8631: "too_large",
    41332: "unsupported_table",
    41333: "unsupported_table",
    41368: "unsupported_table",
    6005: "shut_down",
    6006: "shut_down",
}

_CHANGED: Final = frozenset({207, 208})
"""Invalid column name, invalid object name."""

_UNFIT_VALUE: Final = frozenset(
    {220, 232, 235, 241, 242, 244, 245, 248, 293, 295, 296, 8114, 8115, 8169}
)
"""Conversions that failed: before the first row, of a filter's value."""

_NO_SUCH_OPERATION: Final = frozenset({206, 306, 402, 403, 468})
"""The column's type has no such operator."""


def connect_failure(stage: Stage, error: Exception, numbers: Sequence[int]) -> SourceFailure:
    """Why TLS or the login failed. ``numbers`` are the server's errors, in its order.

    A missing database comes with a failed login behind it: the first that is known decides.
    """
    for number in numbers:
        if number in _LOGIN_REASONS:
            return SourceFailure(Stage.AUTH, _LOGIN_REASONS[number])
    if numbers:
        return SourceFailure(Stage.AUTH, "unknown")
    if isinstance(error, ssl.SSLError):
        return SourceFailure(Stage.TLS, "tls")
    return SourceFailure(stage, _transport_reason(error))


def statement_failure(
    stage: Stage, error: Exception, numbers: Sequence[int], *, table: str | None
) -> SourceFailure:
    """Why a statement, or the reading of its rows, failed."""
    if not numbers:
        return SourceFailure(stage, _transport_reason(error), table=table)
    for number in numbers:
        if number in _CHANGED and table is not None:
            return SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=table)
        if stage is Stage.QUERY and number in _UNFIT_VALUE:
            return SourceFailure(stage, INVALID_FILTER_VALUE, table=table)
        if stage is Stage.QUERY and number in _NO_SUCH_OPERATION:
            return SourceFailure(stage, INVALID_FILTER, table=table)
        if number in _STATEMENT_REASONS:
            return SourceFailure(stage, _STATEMENT_REASONS[number], table=table)
    return SourceFailure(stage, "unknown", table=table)


def _transport_reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return TIMEOUT
    if isinstance(error, AnswerTooLarge):
        return "too_large"
    if isinstance(error, OSError | ClosedConnectionError):
        return RESET
    return PROTOCOL
