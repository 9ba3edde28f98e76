"""What becomes of text that is not valid in its encoding."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.datasources.texts import Texts, broken_member

REPLACED = "\ufffd"


@pytest.mark.parametrize(
    ("data", "encoding", "text", "count"),
    [
        (b"a\xf3b", "utf-8", f"a{REPLACED}b", 1),
        (b'"\xf3"', "utf-8", f'"{REPLACED}"', 1),
        (b"\xe2\x82", "utf-8", REPLACED, 1),
        (b"\xed\xa0\x80", "utf-8", REPLACED * 3, 3),
        (b"\xef\xbf\xbd\xff", "utf-8", REPLACED * 2, 1),
        (b"a\0\0\xd8b\0", "utf-16-le", f"a{REPLACED}b", 1),
        (b"a\0b", "utf-16-le", f"a{REPLACED}", 1),
        (b"\xfd\xff", "utf-16-le", REPLACED, 0),
        (b"\x81\x80", "cp1252", f"{REPLACED}\u20ac", 1),
        ("h\u00e9\U0001f600".encode(), "utf-8", "h\u00e9\U0001f600", 0),
    ],
)
def test_what_is_put_in_place_is_counted(data: bytes, encoding: str, text: str, count: int) -> None:
    texts = Texts(replaces=True)
    assert texts.decoded(data, encoding) == text
    assert texts.take_replaced() == count
    assert texts.take_replaced() == 0


def test_without_leave_nothing_is_replaced() -> None:
    texts = Texts()
    with pytest.raises(UnicodeDecodeError):
        texts.decoded(b"\xf3")
    assert texts.take_replaced() == 0


@given(st.binary())
def test_valid_parts_stay_and_invalid_ones_are_counted(data: bytes) -> None:
    texts = Texts(replaces=True)
    text = texts.decoded(data)
    kept = [character for character in text if character != REPLACED]
    assert "".join(kept) == data.decode("utf-8", "ignore").replace(REPLACED, "")
    assert texts.take_replaced() == text.count(REPLACED) - data.decode("utf-8", "ignore").count(
        REPLACED
    )
    # no ASCII, which is what a document is made of, is ever lost
    assert [b for b in data if b < 128] == [ord(c) for c in text if ord(c) < 128]


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_half_characters_are_replaced_one_by_one(text: str) -> None:
    texts = Texts(replaces=True)
    whole = texts.whole(text)
    assert len(whole) == len(text)
    halves = sum("\ud800" <= character <= "\udfff" for character in text)
    assert texts.take_replaced() == halves
    whole.encode()


def test_first_broken_member_is_found() -> None:
    fine = json.dumps({"a": "\ud800", "b": 1}).encode()
    assert broken_member(fine) is None, "an escape is valid text"
    assert broken_member(b'{"a":"h\xc3\xa9","b":["x",{"c":"\xf3"}],"d":"\xf3"}') == "b"


@pytest.mark.parametrize("row", [b"\xff", b'["\xff"]', b'{"a":"\xff"', b'{"a":' + b"[" * 9_000])
def test_row_that_cannot_be_taken_apart_has_no_member(row: bytes) -> None:
    assert broken_member(row + b"\xff") is None
