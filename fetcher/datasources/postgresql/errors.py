"""Where libpq's failures become safe words (spec datasources, section 5).

Nothing of a driver's text leaves this module: texts are only searched for what classifies them.
"""

import errno
import os
import re
from typing import Final

from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGresult

from fetcher.datasources.postgresql.libpq import codes_in
from fetcher_engine import SourceFailure, Stage

INVALID_FILTER: Final = "invalid_filter"
INVALID_FILTER_VALUE: Final = "invalid_filter_value"
INVALID_TEXT: Final = "invalid_text"
SCHEMA_CHANGED: Final = "schema changed"
CELL_TOO_LARGE: Final = "cell_too_large"
RESET: Final = "reset"
TIMEOUT: Final = "timeout"
PROTOCOL: Final = "protocol"

_CONNECT_REASONS: Final = {
    "28P01": "auth",
    "28000": "auth",
    "3D000": "database_missing",
    "42501": "forbidden",
    "53300": "too_many_connections",
    "57P03": "starting_up",
}

_ERRNO_REASONS: Final = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EADDRNOTAVAIL: "unreachable",
    errno.ECONNRESET: RESET,
    errno.EPIPE: RESET,
    errno.ETIMEDOUT: TIMEOUT,
}

_NOT_THIS_PROTOCOL: Final = (
    b"expected authentication request",
    b"received invalid response",
    b"received unexpected",
    b"invalid length",
)

_PLAIN: Final = re.compile(rb"no encryption|SSL off")
"""How servers of version 14 on, and older ones, tell of a session without TLS."""

_ALERT: Final = re.compile(rb"SSL error: [^\n]* alert ")

_STATEMENT_REASONS: Final = {
    "57014": TIMEOUT,
    "55P03": "lock_timeout",
    "25P03": TIMEOUT,
    "57P01": "shut_down",
    "57P02": "shut_down",
    "57P03": "starting_up",
    "42501": "forbidden",
    "25006": "forbidden",
    "40001": "conflict",
    "40P01": "conflict",
    "22021": INVALID_TEXT,
    "22P05": INVALID_TEXT,
    "54000": "too_large",
}

_NO_SUCH_OPERATION: Final = frozenset({"42883", "42725", "42804", "42846", "42P18"})
"""The column's type has no such operator, or none for such a value."""

_CHANGED_STATES: Final = frozenset({"42P01", "3F000", "42703"})
"""Undefined table, schema and column."""


SNAPSHOT_REFUSED_STATES: Final = frozenset({"0A000", "42601", "08P01"})
"""Not supported, not understood, and how PgBouncer forbids transactions in its statement mode."""


def connect_failure(stage: Stage, message: bytes) -> SourceFailure:
    """What libpq's text about failed attempts says; ``message`` holds the server's codes."""
    codes = codes_in(message)
    # that an attempt without TLS was refused for it tells nothing beside what TLS failed of
    telling = [code for code, text in codes if not (code == "28000" and _PLAIN.search(text))]
    if telling:
        return SourceFailure(Stage.AUTH, _CONNECT_REASONS.get(telling[0], "unknown"))
    if stage is not Stage.TLS and _ALERT.search(message):
        # in TLS 1.3 the server's verdict on our certificate comes after the handshake
        return SourceFailure(Stage.TLS, "tls")
    if codes:
        return SourceFailure(Stage.TLS, "tls_required")
    return SourceFailure(stage, _client_reason(stage, message))


def _client_reason(stage: Stage, message: bytes) -> str:
    """Why libpq itself gave up."""
    for number, reason in _ERRNO_REASONS.items():
        if os.strerror(number).encode() in message:
            return reason
    if b"server closed the connection unexpectedly" in message or b"EOF detected" in message:
        return RESET
    if any(sign in message for sign in _NOT_THIS_PROTOCOL):
        return PROTOCOL
    # in the login: no password to send, an unknown method, or a server that does not know the
    # password either (SCRAM authenticates both sides)
    return {Stage.TLS: "tls", Stage.AUTH: "auth"}.get(stage, "unknown")


def statement_failure(stage: Stage, state: str | None, *, table: str | None) -> SourceFailure:
    """What a statement's SQLSTATE says; without one, libpq itself gave up: the server is gone."""
    if state in _CHANGED_STATES and table is not None:
        return SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=table)
    if state is None:
        return SourceFailure(stage, RESET, table=table)
    if stage is Stage.QUERY:
        # before the first row only our constants are evaluated: the filters' values
        if state.startswith("22"):
            return SourceFailure(stage, INVALID_FILTER_VALUE, table=table)
        if state in _NO_SUCH_OPERATION:
            return SourceFailure(stage, INVALID_FILTER, table=table)
    by_class = {"53": "out_of_resources", "08": RESET}.get(state[:2], "unknown")
    return SourceFailure(stage, _STATEMENT_REASONS.get(state, by_class), table=table)


def state_of(result: PGresult) -> str | None:
    code = result.error_field(DiagnosticField.SQLSTATE)
    return code.decode("ascii", "replace") if code else None
