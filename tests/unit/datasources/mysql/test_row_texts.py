"""What is made of rendered rows: checks, escapes, and the JSON that only MariaDB takes for such."""

import json

import pytest

from fetcher.datasources.mysql.query import TableQuery
from fetcher.datasources.mysql.row_texts import RowTexts
from fetcher_engine import SourceFailure


def texts(*, checked: tuple[str, ...] = (), max_cell_bytes: int = 1000) -> RowTexts:
    query = TableQuery(
        name="t", fields=("a", "j", "k"), statement="", filtered=(), unchecked_json=checked
    )
    return RowTexts(query, max_cell_bytes=max_cell_bytes)


def failure(rows: list[bytes | None], made_by: RowTexts) -> tuple[str, str | None, str | None]:
    with pytest.raises(SourceFailure) as caught:
        made_by.joined(rows)
    assert caught.value.stage == "rows"
    return caught.value.reason, caught.value.table, caught.value.column


def test_rows_are_joined_by_commas() -> None:
    assert texts().joined([b'{"a":1}', b'{"a":2}']) == b'{"a":1},{"a":2}'


def test_row_that_is_null_is_no_row() -> None:
    assert failure([b'{"a":1}', None], texts()) == ("protocol", "t", None)


def test_control_characters_are_escaped_and_line_breaks_of_base64_taken_out() -> None:
    joined = texts().joined([b'{"a":"x\x01\x1f\ty"}', b'{"a":"AAAA\nBBBB"}'])
    assert joined == b'{"a":"x\\u0001\\u001f\\ty"},{"a":"AAAABBBB"}'


def test_row_that_is_too_large_is_named_by_its_largest_column() -> None:
    rows: list[bytes | None] = [b'{"a":1}', b"\x01!5,2000,30"]
    assert failure(rows, texts()) == ("cell_too_large", "t", "j")


def test_cell_that_grows_beyond_the_limit_when_rendered_is_named() -> None:
    large = b'{"a":"' + b"x" * 999 + b'","j":1}'
    assert failure([large], texts()) == ("cell_too_large", "t", "a")
    fenced = b'{"a":"x","j":\xff[' + b"1," * 600 + b"1]\xff}"
    assert failure([fenced], texts(checked=("j",))) == ("cell_too_large", "t", "j")
    wide = b'{"a":"' + b"x" * 600 + b'","j":"' + b"y" * 600 + b'"}'
    assert texts().joined([wide]) == wide


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
    rows: list[bytes | None] = [b'{"a":1,"j":\xff' + each + b"\xff}" for each in (b"{}", cell)]
    assert made_by.joined(rows) == b'{"a":1,"j":{}},{"a":1,"j":' + cell + b"}"


@pytest.mark.parametrize("large", [b"", b"1e400,"])
def test_json_comes_on_one_line_and_keeps_its_blanks(large: bytes) -> None:
    row = (
        b'{"a":"x\ty","j":\xff{"a b":\t[' + large + b'1.10,\r\n -2 , "c d" ] }\n\xff,"b":"AA\nBB"}'
    )
    assert texts(checked=("j",)).joined([row]) == (
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
        b"[" + b"10," * 600_000 + b"1.]",
    ],
)
def test_what_only_mariadb_takes_for_json_names_its_column(cell: bytes) -> None:
    made_by = texts(checked=("j", "k"), max_cell_bytes=4_000_000)
    rows: list[bytes | None] = [
        b'{"j":\xff1\xff,"k":\xff1e400\xff}',
        b'{"j":\xff2\xff,"k":\xff' + cell + b"\xff}",
    ]
    assert failure(rows, made_by) == ("invalid_json", "t", "k")


def test_texts_may_look_like_json_that_is_none() -> None:
    row = b'{"a":"1., \\\\x \xc3\xbf","j":\xff{}\xff}'
    assert texts(checked=("j",)).joined([row]) == b'{"a":"1., \\\\x \xc3\xbf","j":{}}'


@pytest.mark.parametrize("broken", [b"\xf3", b"\xff", b"\xff\xff", b"\xed\xa0\x80"])
def test_broken_text_is_named_and_never_passes(broken: bytes) -> None:
    row = b'{"a":"x' + broken + b'y","j":\xff{}\xff}'
    assert failure([b'{"a":"1","j":\xff1\xff}', row], texts(checked=("j",))) == (
        "invalid_text",
        "t",
        "a",
    )
    plain = b'{"a":1,"k":"x' + broken + b'y"}'
    assert failure([plain], texts()) == ("invalid_text", "t", "k")


def test_broken_json_is_named() -> None:
    rows: list[bytes | None] = [b'{"a":"1","j":\xff"\xf3"\xff}']
    assert failure(rows, texts(checked=("j",))) == ("invalid_text", "t", "j")


def test_names_of_columns_may_need_escapes() -> None:
    query = TableQuery(
        name="t", fields=('q"\xe9',), statement="", filtered=(), unchecked_json=('q"\xe9',)
    )
    row = '{"q\\"\xe9":'.encode() + b"\xff1.\xff}"
    assert failure([row], RowTexts(query, max_cell_bytes=10)) == ("invalid_json", "t", 'q"\xe9')
    assert json.loads(RowTexts(query, max_cell_bytes=10).joined([row.replace(b".", b"")])) == {
        'q"\xe9': 1
    }


def test_text_of_a_million_quotes_beside_broken_bytes_does_not_hold_up_the_process() -> None:
    text = b'\\"' * 1_000_000
    row = b'{"a":"' + text + b'","j":\x01636166E9}'
    assert failure([row], texts(max_cell_bytes=4_000_000)) == ("invalid_text", "t", "j")
