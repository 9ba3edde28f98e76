"""Where numbers become words (spec datasources, section 5)."""

import errno
import ssl

import pytest
from pymysql.err import OperationalError  # type: ignore[import-untyped] # its stubs are no dependency

from fetcher.datasources.mysql.errors import connect_failure, statement_failure
from fetcher.datasources.mysql.packets import MalformedPacket
from fetcher_engine import Stage


def numbered(code: int) -> Exception:
    error: Exception = OperationalError(code, "canary of the server")
    return error


def wrapped(original: OSError) -> Exception:
    """As the driver does with what goes wrong while it connects."""
    error = numbered(2003)
    error.original_exception = original  # type: ignore[attr-defined]
    return error


def lost_amid(context: OSError) -> Exception:
    """As the driver does with what goes wrong while it reads."""
    error = numbered(2013)
    error.__context__ = context
    return error


@pytest.mark.parametrize(
    ("code", "stage", "reason"),
    [
        (2026, "tls", "tls"),
        (3159, "tls", "tls_required"),
        (1045, "auth", "auth"),
        (1698, "auth", "auth"),
        (2059, "auth", "auth"),
        (1049, "auth", "database_missing"),
        (1044, "auth", "forbidden"),
        (1040, "auth", "too_many_connections"),
        (1203, "auth", "too_many_connections"),
        (1053, "auth", "starting_up"),
        (1130, "auth", "forbidden"),
        (3118, "auth", "auth"),
        (4151, "auth", "auth"),
        (2013, "tls", "reset"),
        (4242, "auth", "unknown"),
    ],
)
def test_numbers_of_a_login(code: int, stage: str, reason: str) -> None:
    """What is lost, is lost where it was."""
    failure = connect_failure(Stage.TLS, numbered(code))
    assert (failure.stage, failure.reason) == (stage, reason)
    assert "canary" not in repr(failure) + str(failure)


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (wrapped(ssl.SSLCertVerificationError("canary")), "tls", "tls"),
        (lost_amid(ssl.SSLError("canary")), "tls", "tls"),
        (wrapped(ConnectionResetError(errno.ECONNRESET, "canary")), "auth", "reset"),
        (wrapped(BrokenPipeError(errno.EPIPE, "canary")), "auth", "reset"),
        (wrapped(TimeoutError(errno.ETIMEDOUT, "canary")), "auth", "timeout"),
        (wrapped(OSError(errno.EHOSTUNREACH, "canary")), "auth", "unreachable"),
        (wrapped(OSError("canary")), "auth", "unknown"),
        (lost_amid(ConnectionResetError(errno.ECONNRESET, "canary")), "auth", "reset"),
        (OperationalError("received unknown auth switch request"), "auth", "protocol"),
        (UnicodeDecodeError("utf-8", b"canary", 0, 1, "canary"), "auth", "protocol"),
        (IndexError("canary"), "auth", "protocol"),
    ],
)
def test_other_ends_of_a_login(error: Exception, stage: str, reason: str) -> None:
    failure = connect_failure(Stage.AUTH, error)
    assert (failure.stage, failure.reason) == (stage, reason)
    assert "canary" not in repr(failure) + str(failure)


@pytest.mark.parametrize(
    ("at", "error", "filtered", "stage", "reason"),
    [
        (Stage.QUERY, numbered(1146), False, "schema", "schema changed"),
        (Stage.QUERY, numbered(1054), False, "schema", "schema changed"),
        (Stage.QUERY, numbered(1412), False, "schema", "schema changed"),
        (Stage.ROWS, numbered(1205), False, "rows", "lock_timeout"),
        (Stage.ROWS, numbered(1213), False, "rows", "conflict"),
        (Stage.ROWS, numbered(1317), False, "rows", "interrupted"),
        (Stage.ROWS, numbered(1927), False, "rows", "shut_down"),
        (Stage.ROWS, numbered(1969), False, "rows", "timeout"),
        (Stage.ROWS, numbered(3024), False, "rows", "timeout"),
        (Stage.QUERY, numbered(1142), False, "query", "forbidden"),
        (Stage.QUERY, numbered(1143), False, "query", "forbidden"),
        (Stage.QUERY, numbered(1292), True, "query", "invalid_filter_value"),
        (Stage.QUERY, numbered(1292), False, "query", "unknown"),
        (Stage.QUERY, numbered(1267), True, "query", "invalid_filter"),
        (Stage.QUERY, numbered(1153), True, "query", "too_large"),
        (Stage.ROWS, numbered(2013), False, "rows", "reset"),
        (Stage.ROWS, numbered(0), False, "rows", "reset"),
        (Stage.ROWS, numbered(4242), False, "rows", "unknown"),
        (Stage.ROWS, ConnectionResetError(errno.ECONNRESET, "canary"), False, "rows", "reset"),
        (Stage.ROWS, ssl.SSLEOFError(8, "canary"), False, "rows", "reset"),
        (Stage.ROWS, MalformedPacket(), False, "rows", "protocol"),
        (Stage.QUERY, RuntimeError("LOAD_LOCAL canary"), False, "query", "protocol"),
    ],
)
def test_statements(at: Stage, error: Exception, filtered: bool, stage: str, reason: str) -> None:
    failure = statement_failure(at, error, table="t", filtered=filtered)
    assert (failure.stage, failure.reason, failure.table) == (stage, reason, "t")
    assert "canary" not in repr(failure) + str(failure)


def test_missing_table_of_the_catalogue_is_no_change_of_a_source() -> None:
    failure = statement_failure(Stage.SCHEMA, numbered(1146), table=None)
    assert (failure.stage, failure.reason) == ("schema", "unknown")
