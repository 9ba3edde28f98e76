"""How each type is read, and written as JSON (spec datasources 10.4)."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.datasources.sqlserver.rendering import NotRenderable, Renderer
from fetcher.datasources.sqlserver.types import Column, Kind, is_long, read_expression
from fetcher.domain.jobs import JobOptions
from tests.unit.datasources.sqlserver.test_filters import a_column


@pytest.mark.parametrize(
    ("base_type", "max_bytes", "expression"),
    [
        ("bigint", 8, "c"),
        ("bit", 1, "c"),
        ("real", 4, "c"),
        ("decimal", 9, "CONVERT(nvarchar(41), c)"),
        ("smallmoney", 4, "CONVERT(nvarchar(41), c, 2)"),
        ("date", 3, "CONVERT(nvarchar(10), c, 23)"),
        ("time", 5, "CONVERT(nvarchar(16), c, 121)"),
        ("datetime2", 8, "CONVERT(nvarchar(27), c, 126)"),
        ("datetimeoffset", 10, "CONVERT(nvarchar(34), c, 126)"),
        ("uniqueidentifier", 16, "CONVERT(nvarchar(36), c)"),
        ("varchar", 4000, "CONVERT(varbinary(8000), CONVERT(nvarchar(4000), c))"),
        ("nvarchar", 8000, "CONVERT(varbinary(8000), CONVERT(nvarchar(4000), c))"),
        ("varchar", 8000, "SUBSTRING(CONVERT(varbinary(max), CONVERT(nvarchar(max), c)), 1, 202)"),
        ("nvarchar", -1, "SUBSTRING(CONVERT(varbinary(max), CONVERT(nvarchar(max), c)), 1, 202)"),
        ("xml", -1, "SUBSTRING(CONVERT(varbinary(max), CONVERT(nvarchar(max), c)), 1, 202)"),
        ("vector", 12, "SUBSTRING(CONVERT(varbinary(max), CONVERT(nvarchar(max), c)), 1, 202)"),
        ("timestamp", 8, "CONVERT(varbinary(8000), c)"),
        ("varbinary", -1, "SUBSTRING(CONVERT(varbinary(max), c), 1, 101)"),
        (None, 892, "SUBSTRING(CONVERT(varbinary(max), c), 1, 101)"),
    ],
)
def test_expression(base_type: str | None, max_bytes: int, expression: str) -> None:
    column = a_column(base_type, max_bytes=max_bytes)
    assert read_expression(column, "c", max_cell_bytes=100) == expression
    assert is_long(column) is expression.startswith("SUBSTRING")


def rendered(base_type: str, value: object, **options: str) -> str:
    column: Column = a_column(base_type)
    return Renderer(JobOptions(**options)).of(column)(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("base_type", "value", "text"),
    [
        ("decimal", "12345678901234567890.123456789", '"12345678901234567890.123456789"'),
        ("decimal", ".50", '"0.50"'),
        ("decimal", "-.50", '"-0.50"'),
        ("datetime2", "2031-04-05T06:07:08.0000000", '"2031-04-05T06:07:08Z"'),
        ("datetime2", "2031-04-05T06:07:00", '"2031-04-05T06:07:00Z"'),
        ("datetimeoffset", "2031-04-05T06:07:08.1000000+05:45", '"2031-04-05T06:07:08.1+05:45"'),
        ("datetimeoffset", "2031-04-05T06:07:08.0000000+00:00", '"2031-04-05T06:07:08Z"'),
        ("time", "06:07:00.0000000", '"06:07:00"'),
        ("time", "06:07:10", '"06:07:10"'),
        ("real", struct.unpack("<f", struct.pack("<f", 3.4028235e38))[0], "3.4028235e+38"),
        ("real", struct.unpack("<f", struct.pack("<f", 16777216.0))[0], "16777216"),
        ("float", 0.30000000000000004, "0.30000000000000004"),
        ("sql_variant", "datetimeoffset:2031-04-05T06:07:08.5000000+02:00".encode("utf-16-le"),
         '"2031-04-05T06:07:08.5+02:00"'),
        ("sql_variant", "bit:1".encode("utf-16-le"), "true"),
        ("sql_variant", "char:".encode("utf-16-le"), '""'),
        ("sql_variant", "real:3DCCCCCD".encode("utf-16-le"), "0.1"),
        ("sql_variant", "money:-1.5000".encode("utf-16-le"), '"-1.5000"'),
    ],
)  # fmt: skip
def test_value(base_type: str, value: object, text: str) -> None:
    assert rendered(base_type, value) == text


@pytest.mark.parametrize(
    "text", ["varchar!", "hierarchyid:x", "nonsense", "", "float:00", "real:4004000000000000"]
)
def test_variant_without_a_form_is_never_guessed(text: str) -> None:
    with pytest.raises(NotRenderable):
        rendered("sql_variant", text.encode("utf-16-le"))


@pytest.mark.parametrize(
    ("number", "text"), [(2**53, "9007199254740992"), (2**53 + 1, '"9007199254740993"')]
)
def test_large_integers_are_texts_where_wanted(number: int, text: str) -> None:
    assert rendered("bigint", number, bigint="string") == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_real_reads_back_as_the_same_four_bytes(value: float) -> None:
    text = rendered("real", value)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)


def test_every_kind_is_read_and_written() -> None:
    renderer = Renderer(JobOptions())
    assert set(renderer._by_kind) == set(Kind)


@pytest.mark.parametrize("base_type", ["int", "bigint", "decimal", "real", "nvarchar", "varbinary"])
def test_server_that_sends_something_else_cannot_write_into_the_document(base_type: str) -> None:
    evil = '1,"admin":true'
    with pytest.raises((NotRenderable, TypeError, ValueError, AttributeError)):
        rendered(base_type, evil, decimals="number")


@pytest.mark.parametrize(
    "base_type", ["decimal", "date", "time", "datetime2", "datetimeoffset", "uniqueidentifier"]
)
def test_servers_texts_are_escaped(base_type: str) -> None:
    text = rendered(base_type, '","a\n\\')
    assert isinstance(json.loads(text), str)
    assert "\n" not in text
