"""What is made of rendered rows: checks, escapes, and what is stored as JSON and is none."""

import json

import pytest

from fetcher.datasources.mysql.fenced_packets import FENCE, CutRows
from fetcher.datasources.mysql.query import TableQuery
from fetcher.datasources.mysql.row_texts import RowTexts
from fetcher.datasources.texts import Texts
from fetcher_engine import SourceFailure


def texts(
    *, checked: tuple[str, ...] = (), max_cell_bytes: int = 1000, how: Texts | None = None
) -> RowTexts:
    query = TableQuery(
        name="t", fields=("a", "j", "k"), statement="", filtered=(), unchecked_json=checked
    )
    return RowTexts(query, max_cell_bytes=max_cell_bytes, texts=how)


def row(*parts: bytes) -> bytes:
    """As it comes: JSON that is unchecked stands between the others."""
    return FENCE.join([b"", *parts, b""])


def failure(rows: list[bytes | None], made_by: RowTexts) -> tuple[str, str | None, str | None]:
    with pytest.raises(SourceFailure) as caught:
        made_by.joined(rows)
    assert caught.value.stage == "rows"
    return caught.value.reason, caught.value.table, caught.value.column


def test_rows_are_joined_by_commas() -> None:
    assert texts().joined([row(b'{"a":1}'), row(b'{"a":2}')]) == b'{"a":1},{"a":2}'


def test_rows_that_were_cut_come_before_those_that_came_whole() -> None:
    parts = [b",", b'{"j":', b"1", b"}", b",", b'{"j":', b"x", b"}"]
    cut = CutRows(parts=parts, whole=[row(b'{"j":', b"3", b"}")], count=3)
    assert texts(checked=("j",)).joined_cut(cut) == b'{"j":1},{"j":"x"},{"j":3}'


def test_row_that_is_null_is_no_row() -> None:
    assert failure([row(b'{"a":1}'), None], texts()) == ("protocol", "t", None)


@pytest.mark.parametrize(
    "text", [b'{"a":1}', FENCE + b'{"a":1}', b"x" + row(b"{}"), row(b"{}") + b"x", row(b"{", b"}")]
)
def test_row_without_its_fences_is_no_row(text: bytes) -> None:
    assert failure([text], texts()) == ("protocol", "t", None)


def test_fence_within_json_is_no_text() -> None:
    rows: list[bytes | None] = [row(b'{"j":', b"1" + FENCE + b"2", b"}")]
    assert failure(rows, texts(checked=("j",))) == ("invalid_text", "t", "j")
    two: list[bytes | None] = [row(b'{"j":', b"1" + FENCE + b"2", b',"k":', b"1", b"}")]
    assert failure(two, texts(checked=("j", "k"))) == ("invalid_text", "t", None)


def test_control_characters_are_escaped_and_line_breaks_of_base64_taken_out() -> None:
    joined = texts().joined([row(b'{"a":"x\x01\x1f\ty"}'), row(b'{"a":"AAAA\nBBBB"}')])
    assert joined == b'{"a":"x\\u0001\\u001f\\ty"},{"a":"AAAABBBB"}'


def test_row_that_is_too_large_is_named_by_its_largest_column() -> None:
    rows: list[bytes | None] = [row(b'{"a":1}'), b"\x01!5,2000,30"]
    assert failure(rows, texts()) == ("cell_too_large", "t", "j")


@pytest.mark.parametrize("sizes", [b"5,2000", b"5,x,30", b"", b"1,2,3,4"])
def test_row_without_the_sizes_of_its_cells_is_no_row(sizes: bytes) -> None:
    assert failure([b"\x01!" + sizes], texts()) == ("protocol", "t", None)


def test_cell_that_grows_beyond_the_limit_when_rendered_is_named() -> None:
    large = row(b'{"a":"' + b"x" * 999 + b'","j":1}')
    assert failure([large], texts()) == ("cell_too_large", "t", "a")
    fenced = row(b'{"a":"x","j":', b"[" + b"1," * 600 + b"1]", b"}")
    assert failure([fenced], texts(checked=("j",))) == ("cell_too_large", "t", "j")
    grown = row(b'{"a":"x","j":', b'"' * 600, b"}")
    assert failure([grown], texts(checked=("j",))) == ("cell_too_large", "t", "j")
    wide = b'{"a":"' + b"x" * 600 + b'","j":"' + b"y" * 600 + b'"}'
    assert texts().joined([row(wide)]) == wide


@pytest.mark.parametrize(
    "cell",
    [
        b"1",
        b"-0",
        b"1e400",
        b"1.10",
        b"-0.5E+3",
        b"7" * 5000,
        b"true",
        b"null",
        b'""',
        b'"\\u00e9\\n\\\\\\""',
        b'"\\ud800"',
        b'{"a":[1,2.50,{"b":null}],"c":"x"}',
        b'["' + b"x" * 1_200_000 + b'",1e400]',
        b"[" + b"10," * 600_000 + b"1]",
    ],
)
def test_json_is_let_through_untouched(cell: bytes) -> None:
    made_by = texts(checked=("j",), max_cell_bytes=4_000_000)
    rows: list[bytes | None] = [row(b'{"a":1,"j":', each, b"}") for each in (b"{}", cell)]
    assert made_by.joined(rows) == b'{"a":1,"j":{}},{"a":1,"j":' + cell + b"}"


@pytest.mark.parametrize("large", [b"", b"1e400,"])
def test_json_comes_on_one_line_and_keeps_its_blanks(large: bytes) -> None:
    json_text = b'{"a b":\t[' + large + b'1.10,\r\n -2 , "c d" ] }\n'
    text = row(b'{"a":"x\ty","j":', json_text, b',"b":"AA\nBB"}')
    assert texts(checked=("j",)).joined([text]) == (
        b'{"a":"x\\ty","j":{"a b": [' + large + b'1.10,   -2 , "c d" ] } ,"b":"AABB"}'
    )


@pytest.mark.parametrize(
    "cell",
    [
        b"1.",
        b" ",
        b"[1 .5]",
        b'"a \\x"',
        b'[ 1. , "b" ]',
        b"[1.,2]",
        b"1.e3",
        b"[0,-,1]",
        b"0.5e--3",
        b"-0.1e-",
        b"01",
        b'"\\x"',
        b'{"\\x":1}',
        b'"\\u12"',
        b"NaN",
        b"tru",
        b"",
        b"hello\n\x01",
        b'"a\tb"',
        b'{"a":\x0161',
        b'\x01!1","k":2',
        b"1},{",
        b"[" + b"10," * 600_000 + b"1.]",
        b"[" * 1025 + b"]" * 1025,
    ],
)
def test_what_is_no_json_comes_as_the_text_that_it_is(cell: bytes) -> None:
    made_by = texts(checked=("j", "k"), max_cell_bytes=4_000_000)
    rows: list[bytes | None] = [
        row(b'{"j":', b"1", b',"k":', b"1e400", b"}"),
        row(b'{"j":', b"2", b',"k":', cell, b"}"),
    ]
    joined = made_by.joined(rows)
    assert joined.startswith(b'{"j":1,"k":1e400},{"j":2,"k":"')
    assert json.loads(joined[len(b'{"j":1,"k":1e400},') :]) == {"j": 2, "k": cell.decode()}


@pytest.mark.parametrize(
    "cells",
    [
        (b"[1", b"2]"),
        (b'"a', b'b"'),
        (b'{"a":1', b'"b":2}'),
        (b"1,2", b"3"),
        (b"[1],[2", b"3"),
        (b'1},{"j":2', b"3"),
    ],
)
def test_cells_that_are_no_json_make_none_together(cells: tuple[bytes, bytes]) -> None:
    rows: list[bytes | None] = [row(b'{"j":', each, b"}") for each in cells]
    joined = texts(checked=("j",)).joined(rows)
    values = [each if each == b"3" else json.dumps(each.decode()).encode() for each in cells]
    assert joined == b'{"j":' + values[0] + b'},{"j":' + values[1] + b"}"


def test_texts_may_look_like_json_that_is_none() -> None:
    text = row(b'{"a":"1., \\\\x \xc3\xbf","j":', b"{}", b"}")
    assert texts(checked=("j",)).joined([text]) == b'{"a":"1., \\\\x \xc3\xbf","j":{}}'


@pytest.mark.parametrize("broken", [b"\xf3", b"\xff", b"\xff\xff", b"\xed\xa0\x80", FENCE[:2]])
def test_broken_text_is_named_and_never_passes(broken: bytes) -> None:
    text = row(b'{"a":"x' + broken + b'y","j":', b"{}", b"}")
    before = row(b'{"a":"1","j":', b"1", b"}")
    assert failure([before, text], texts(checked=("j",))) == ("invalid_text", "t", "a")
    plain = row(b'{"a":1,"k":"x' + broken + b'y"}')
    assert failure([plain], texts()) == ("invalid_text", "t", "k")


@pytest.mark.parametrize("cell", [b'"\xf3"', b"\xf3", b"[\xf3]", b'"x"' + FENCE[:3]])
def test_broken_json_is_named_or_replaced(cell: bytes) -> None:
    rows: list[bytes | None] = [row(b'{"a":"1","j":', cell, b"}")]
    assert failure(rows, texts(checked=("j",))) == ("invalid_text", "t", "j")
    replacing = Texts(replaces=True)
    text = cell.decode(errors="replace")
    wanted = text.strip('"') if cell == b'"\xf3"' else text
    joined = texts(checked=("j",), how=replacing).joined(rows)
    assert json.loads(joined) == {"a": "1", "j": wanted}
    assert replacing.take_replaced() == text.count("\N{REPLACEMENT CHARACTER}")


def test_names_of_columns_may_need_escapes() -> None:
    query = TableQuery(
        name="t", fields=('q"\xe9',), statement="", filtered=(), unchecked_json=('q"\xe9',)
    )
    made_by = RowTexts(query, max_cell_bytes=20)
    name = '{"q\\"\xe9":'.encode()
    assert failure([row(name, b"\xf3", b"}")], made_by) == ("invalid_text", "t", 'q"\xe9')
    assert json.loads(made_by.joined([row(name, b"1.", b"}")])) == {'q"\xe9': "1."}


def test_text_of_a_million_quotes_beside_broken_bytes_does_not_hold_up_the_process() -> None:
    text = b'\\"' * 1_000_000
    whole = row(b'{"a":"' + text + b'","j":\x01636166E9}')
    assert failure([whole], texts(max_cell_bytes=4_000_000)) == ("invalid_text", "t", "j")
