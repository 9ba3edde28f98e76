"""A row that cannot be written fails with the names of source, table and column, and no value."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import pytest

from fetcher_engine import EngineError, RowEncoder

LATEST = datetime.max.replace(tzinfo=timezone.min)


class Broken:
    """Not a mapping and not a value: raises whatever it is asked."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError("secret")


class Unreadable(Mapping[str, object]):
    def __getitem__(self, name: str) -> object:
        raise RuntimeError("secret")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


def cyclic(branches: int) -> Any:
    value: list[Any] = []
    value.extend([{"again": value}] * branches)
    return value


BAD_ROWS: dict[str, tuple[Any, str | None, str]] = {
    "object": ({"a": 1, "b": object()}, "b", "not_encodable"),
    "nested callable": ({"a": 1, "b": [{"c": lambda: 1}]}, "b", "not_encodable"),
    "complex number": ({"a": 1, "b": 1j}, "b", "not_encodable"),
    "key None": ({"a": 1, "b": {None: 1}}, "b", "not_encodable"),
    "key True": ({"a": 1, "b": {True: 1}}, "b", "not_encodable"),
    "no year in UTC": ({"a": 1, "b": LATEST}, "b", "not_encodable"),
    "raising value": ({"a": 1, "b": Broken()}, "b", "not_encodable"),
    "cycle": ({"a": 1, "b": cyclic(1)}, "b", "not_encodable"),
    "cycle of many branches": ({"a": 1, "b": cyclic(10)}, "b", "not_encodable"),
    # surrogates fail (decision "Invalid text in a source"), where spec 11.3 replaced them
    "surrogate": ({"a": 1, "b": "\ud800"}, "b", "invalid_text"),
    "nested surrogate": ({"a": 1, "b": [{"\udfff": 1}]}, "b", "invalid_text"),
    "object, then surrogate": ({"a": object(), "b": "\ud800"}, "a", "not_encodable"),
    "surrogate, then object": ({"a": "\ud800", "b": object()}, "a", "invalid_text"),
    "surrogate in a name": ({"\ud800": 1}, None, "invalid_text"),
    "name that is no text": ({1: 1}, None, "not_encodable"),
    "one name that is no text": ({1: 1, "a": 1}, None, "not_encodable"),
    "raising mapping": (Unreadable(), None, "not_encodable"),
    "no mapping": (Broken(), None, "not_encodable"),
}


@pytest.mark.parametrize("what", BAD_ROWS)
@pytest.mark.parametrize("before", [0, 7])
def test_what_cannot_be_written_is_named(what: str, before: int) -> None:
    row, column, reason = BAD_ROWS[what]
    good: list[Any] = [{"a": 1, "b": [[]]}] * before
    with pytest.raises(EngineError) as caught:
        list(RowEncoder(source="s", table="t").encode([*good, row, *good]))
    error = caught.value
    assert error.category == "internal"
    assert error.message == "failed to serialize extraction result"
    assert (error.source, error.table, error.column, error.reason) == ("s", "t", column, reason)
    assert error.__context__ is None
    assert error.__cause__ is None


def test_pieces_before_a_row_that_fails_are_given() -> None:
    rows: list[dict[str, object]] = [{"x": "y" * 300_000}, {"x": "z"}, {"x": object()}]
    pieces = RowEncoder(source="s", table="t").encode(rows)
    assert next(pieces)[1] == 1
    with pytest.raises(EngineError):
        next(pieces)


def test_depth_that_the_stack_has_no_room_for_is_a_value_that_cannot_be_written() -> None:
    value: Any = 1
    for _ in range(190):
        value = [value]

    def encode(frames: int) -> None:
        if frames:
            encode(frames - 1)
        else:
            list(RowEncoder(source="s", table="t").encode([{"a": 1, "b": value}] * 5))

    room = sys.getrecursionlimit() - len(inspect.stack())
    with pytest.raises(EngineError) as caught:
        encode(room - 200)
    assert (caught.value.column, caught.value.reason) == ("b", "not_encodable")
    assert caught.value.__context__ is None
    encode(0)
