"""Rows that cannot be had or written: what a job is told then, and of which column."""

import pytest

from fetcher.datasources.oracle import rows
from fetcher.datasources.texts import Texts
from fetcher_engine import SourceFailure, Stage
from tests.unit.datasources.oracle.fake_driver import (
    Answer,
    Row,
    client_error,
    driver_error,
)
from tests.unit.datasources.oracle.one_read import LIMIT, a_database, of, one_cell, read_all


async def test_broken_text_fails_and_names_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver hands broken bytes over as half characters: that was asked of it."""
    fetched = [("1", "fine"), ("2", "b\udcf3d")]
    database = a_database(monkeypatch, Answer("SELECT t.", fetched))
    with pytest.raises(SourceFailure) as caught:
        await read_all(database, ("ID", "NAME"))
    failure = caught.value
    assert (failure.stage, failure.reason, failure.table, failure.column) == (
        Stage.ROWS, "invalid_text", "STAFF", "NAME",
    )  # fmt: skip
    assert failure.__context__ is None


async def test_broken_text_is_replaced_and_counted_where_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched = [("1", "fine \ufffd"), ("2", "b\udcf3\udc80d"), ("3", "\ud800")]
    database = a_database(monkeypatch, Answer("SELECT t.", fetched))
    texts = Texts(replaces=True)
    (batch,) = await read_all(database, ("ID", "NAME"), texts=texts)
    assert batch.data.decode() == (
        '{"ID":1,"NAME":"fine \ufffd"},{"ID":2,"NAME":"b\ufffd\ufffdd"},{"ID":3,"NAME":"\ufffd"}'
    )
    assert texts.take_replaced() == 3


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (client_error("DPY-4011"), "reset"),
        (client_error("DPY-4024"), "timeout"),
        (driver_error(1555), "conflict"),
        (driver_error(9999), "unknown"),
        (UnicodeDecodeError("utf-8", b"\xf3", 0, 1, "canary"), "invalid_text"),
    ],
)
async def test_any_end_but_the_servers_fails(
    end: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = a_database(monkeypatch, Answer("SELECT t.", [("1",)] * 1000, end=end))
    with pytest.raises(SourceFailure) as caught:
        await read_all(database)
    failure = caught.value
    assert (failure.stage, failure.reason, failure.table) == (Stage.ROWS, reason, "STAFF")
    assert failure.__context__ is None


async def test_no_round_trip_for_rows_may_take_longer_than_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = a_database(monkeypatch, Answer("SELECT t.", [("1",)]))
    await read_all(database)
    assert rows.NO_PROGRESS_SECONDS * 1000 in database.connections[0].timeouts
    assert 120_000 in database.connections[0].timeouts


@pytest.mark.parametrize(
    ("name", "fetched"),
    [
        ("CLOB", (None, str(LIMIT + 1))),
        ("CLOB", ("é" * LIMIT, str(LIMIT))),
        ("BLOB", (None, str(LIMIT + 1))),
        ("LONG", ("x" * (LIMIT + 1),)),
        ("LONG RAW", (b"x" * (LIMIT + 1),)),
    ],
)
async def test_a_cell_that_is_too_large_is_named(
    name: str, fetched: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns: list[Row] = [("HR", "STAFF", "C", *of(name), "Y")]
    database = a_database(monkeypatch, Answer("SELECT ", [fetched]), columns)
    with pytest.raises(SourceFailure) as caught:
        await read_all(database, ("C",))
    failure = caught.value
    assert (failure.reason, failure.table, failure.column) == ("cell_too_large", "STAFF", "C")


@pytest.mark.parametrize("text", ["1E+999999999", "1E-999999999", "Infinity", "~"])
@pytest.mark.parametrize("scale", [0, 2, None])
async def test_a_number_that_is_none_is_not_written_out(
    text: str, scale: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digits could take all memory."""
    with pytest.raises(SourceFailure) as caught:
        await one_cell(monkeypatch, of("NUMBER", scale=scale), text)
    failure = caught.value
    assert (failure.stage, failure.reason, failure.column) == (Stage.ROWS, "protocol", "C")


@pytest.mark.parametrize(
    ("name", "owner"), [("BFILE", None), ("SDO_GEOMETRY", "MDSYS"), ("ADDRESS_T", "HR")]
)
async def test_what_has_no_text_is_refused_and_not_null(
    name: str, owner: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns: list[Row] = [("HR", "STAFF", "C", *of(name, owner=owner), "Y")]
    database = a_database(monkeypatch, Answer("SELECT "), columns)
    with pytest.raises(SourceFailure) as caught:
        await read_all(database, ("C",))
    failure = caught.value
    assert (failure.stage, failure.reason) == (Stage.QUERY, "unsupported_type")
    assert (failure.table, failure.column) == ("STAFF", "C")


async def test_a_value_that_the_server_refuses_names_its_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = a_database(monkeypatch, Answer("SELECT t.", error=driver_error(1722)))
    with pytest.raises(SourceFailure) as caught:
        await read_all(database, filters={"PAY": {"eq": [1]}})
    failure = caught.value
    assert (failure.reason, failure.column) == ("invalid_filter_value", "PAY")
