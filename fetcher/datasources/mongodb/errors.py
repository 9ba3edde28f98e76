"""Where pymongo's failures become safe words (spec datasources, section 5).

Nothing of a driver's text leaves this module: a text is looked at only to tell failures of TLS from
others, since pymongo drops the exception and keeps its text.
"""

import ssl
from collections.abc import Iterator, Mapping
from typing import Final

from bson.errors import InvalidBSON
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    ConnectionFailure,
    ExecutionTimeout,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    ProtocolError,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from fetcher_engine import SourceFailure, Stage

INVALID_FILTER: Final = "invalid_filter"
INVALID_FILTER_VALUE: Final = "invalid_filter_value"
INVALID_TEXT: Final = "invalid_text"
INVALID_SETTING: Final = "invalid_setting"
UNSUPPORTED_NAME: Final = "unsupported_name"
CELL_TOO_LARGE: Final = "cell_too_large"
SCHEMA_CHANGED: Final = "schema changed"
TIMEOUT: Final = "timeout"
RESET: Final = "reset"
PROTOCOL: Final = "protocol"

_CONNECT_REASONS: Final = {
    18: "auth",
    8000: "auth",
    334: "auth",  # the mechanism is not offered
    13: "forbidden",
    91: "starting_up",
    11600: "starting_up",
}

_STATEMENT_REASONS: Final = {
    13: "forbidden",
    43: RESET,
    50: TIMEOUT,
    91: "shut_down",
    11600: "shut_down",
    11601: "interrupted",
    11602: "interrupted",
    112: "conflict",
    237: RESET,
    146: "out_of_resources",
    175: SCHEMA_CHANGED,  # a plan killed because its collection or index was dropped
    189: "not_primary",
    239: "conflict",
    246: "conflict",
    262: TIMEOUT,
    292: "out_of_resources",
    10107: "not_primary",
    13435: "not_primary",
    13436: "not_primary",
}

_SIGNS_OF_TLS: Final = ("SSL handshake failed", "(_ssl.c:")
"""pymongo's words, and how all texts of Python's ssl module end."""

_TIMEOUTS: Final = (NetworkTimeout, TimeoutError, ServerSelectionTimeoutError)
_CLIENT_REASONS: Final = (
    ((ConfigurationError, IndexError), "auth"),  # a name or password that no mechanism takes
    (ProtocolError, PROTOCOL),
    (InvalidBSON, PROTOCOL),
    (AutoReconnect, RESET),
    (OSError, RESET),
)

_BAD_QUERY_CODES: Final = frozenset({2, 9, 14, 40352, 51091, 51108})
"""The server cannot apply a filter: BadValue, FailedToParse, TypeMismatch, a regex it refuses."""

SNAPSHOT_REFUSED_CODES: Final = frozenset({20, 72, 115, 123, 246, 263, 5788000})
"""This server, or this collection, has no snapshot reads after all."""


def connect_failure(error: BaseException) -> SourceFailure:
    """What ended the way from a connected socket to a logged-in session."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, OperationFailure):
            return SourceFailure(Stage.AUTH, _CONNECT_REASONS.get(cause.code or 0, "unknown"))
    handshake = any(sign in str(cause) for cause in causes for sign in _SIGNS_OF_TLS)
    stage = Stage.TLS if handshake else Stage.AUTH
    if any(isinstance(cause, _TIMEOUTS) for cause in causes):
        return SourceFailure(stage, TIMEOUT)
    if handshake or any(isinstance(cause, ssl.SSLError) for cause in causes):
        return SourceFailure(Stage.TLS, "tls")
    for kinds, reason in _CLIENT_REASONS:
        if isinstance(error, kinds):
            return SourceFailure(stage, reason)
    return SourceFailure(stage, PROTOCOL)


def statement_failure(stage: Stage, error: Exception, *, table: str | None) -> SourceFailure:
    """What a failed command says by its code, or by having had no answer."""
    if isinstance(error, ExecutionTimeout | NetworkTimeout):
        return SourceFailure(stage, TIMEOUT, table=table)
    code = code_of(error)
    if code is not None:
        if stage is Stage.QUERY and code in _BAD_QUERY_CODES:
            return SourceFailure(stage, INVALID_FILTER, table=table)
        reason = _STATEMENT_REASONS.get(code, "unknown")
        return SourceFailure(
            Stage.SCHEMA if reason == SCHEMA_CHANGED else stage, reason, table=table
        )
    if isinstance(error, ConnectionFailure | OSError):
        return SourceFailure(stage, RESET, table=table)
    return SourceFailure(stage, "unknown", table=table)


def is_forbidden(error: PyMongoError) -> bool:
    return code_of(error) == 13


def code_of(error: Exception) -> int | None:
    """The server's code for a failed command; None where no answer came.

    pymongo takes a server that is no primary, or shuts down, for a lost connection.
    """
    if isinstance(error, OperationFailure):
        return error.code or 0
    if isinstance(error, NotPrimaryError) and isinstance(error.details, Mapping):
        code = error.details.get("code")
        return code if isinstance(code, int) else 0
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
