"""Where numbers become words (spec datasources, section 5)."""

import ssl

import pytest
from pytds import ClosedConnectionError, InterfaceError  # type: ignore[import-untyped]

from fetcher.datasources.sqlserver.errors import connect_failure, statement_failure
from fetcher.datasources.sqlserver.link import CellBuffer
from fetcher_engine import Stage


@pytest.mark.parametrize(
    ("error", "numbers", "stage", "reason"),
    [
        (InterfaceError(), (18456,), "auth", "auth"),
        (InterfaceError(), (4060, 18456), "auth", "database_missing"),
        (InterfaceError(), (5701, 916), "auth", "forbidden"),
        (InterfaceError(), (424242,), "auth", "unknown"),
        (ssl.SSLError(), (), "tls", "tls"),
        (TimeoutError(), (), "auth", "timeout"),
        (ConnectionResetError(), (), "auth", "reset"),
        (ClosedConnectionError(), (), "auth", "reset"),
        (UnicodeDecodeError("utf-16", b"x", 0, 1, "canary"), (), "auth", "protocol"),
    ],
)
def test_connecting(error: Exception, numbers: tuple[int, ...], stage: str, reason: str) -> None:
    failure = connect_failure(Stage.AUTH, error, numbers)
    assert (failure.stage, failure.reason) == (stage, reason)
    assert "canary" not in str(failure)


@pytest.mark.parametrize(
    ("at", "numbers", "stage", "reason"),
    [
        (Stage.QUERY, (208,), "schema", "schema changed"),
        (Stage.ROWS, (1205,), "rows", "conflict"),
        (Stage.QUERY, (245,), "query", "invalid_filter_value"),
        (Stage.ROWS, (245,), "rows", "unknown"),
        (Stage.QUERY, (402,), "query", "invalid_filter"),
        (Stage.ROWS, (41332,), "rows", "unsupported_table"),
        (Stage.ROWS, (), "rows", "reset"),
    ],
)
def test_statements(at: Stage, numbers: tuple[int, ...], stage: str, reason: str) -> None:
    failure = statement_failure(at, ClosedConnectionError(), numbers, table="t")
    assert (failure.stage, failure.reason, failure.table) == (stage, reason, "t")


def test_buffer_keeps_no_more_than_shows_that_it_is_too_much() -> None:
    buffer = CellBuffer(10)
    for _ in range(5):
        buffer.write(b"12345678")
    assert len(buffer.taken()) == 16
    buffer.write(b"next")
    assert buffer.taken() == b"next"
