"""MongoDB as a source: what filters find, and which are refused."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from bson import DatetimeMS, Decimal128, Int64, ObjectId
from bson.binary import Binary

from fetcher.datasources.engines import RequestEngines
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    rows_of,
)
from tests.integration.datasources.mongo_sources import Source, Where, exact, to

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

OID = ObjectId("64b7f0c2a1d3e4f5a6b7c8d9")
DAY = 86_400_000
START = 1_924_992_000_000  # 2031-01-01


PEOPLE: Sequence[Mapping[str, Any]] = (
    {
        "_id": OID,
        "n": 1,
        "s": "ana",
        "d": DatetimeMS(START),
        "p": Decimal128("0.1"),
        "f": 0.1,
        "b": True,
        "u": Binary(bytes(range(16)), 4),
        "m": "5",
        "tags": ["x", "y"],
    },
    {
        "_id": ObjectId("64b7f0c2a1d3e4f5a6b7c8da"),
        "n": 2,
        "s": "a.b\n",
        "d": DatetimeMS(START + DAY - 1),
        "p": Decimal128("12.50"),
        "f": 2.5,
        "b": False,
        "u": Binary(bytes(range(16)), 3),
        "m": 5,
        "tags": ["z"],
    },
    {
        "_id": ObjectId("64b7f0c2a1d3e4f5a6b7c8db"),
        "n": Int64(9007199254740993),
        "s": "x'; DROP TABLE t; --%_\\",
        "d": DatetimeMS(START + DAY),
        "p": None,
        "f": 7.0,
    },
)


@pytest.fixture(scope="module")
def people(source: Source) -> Source:
    source["people"].insert_many([dict(person) for person in PEOPLE])
    return source


FOUND: Sequence[tuple[Where, list[int]]] = [
    ({"n": {"eq": [1]}}, [0]),
    ({"n": {"eq": [1, 2]}}, [0, 1]),
    ({"n": {"eq": [9007199254740993]}}, [2]),
    ({"n": {"eq": ["2"]}}, [1]),
    ({"n": {"ne": [1]}}, [1, 2]),
    ({"n": {"gt": [1], "lt": [3]}}, [1]),
    ({"n": {"gt": [1.5]}}, [1, 2]),
    ({"n": {"gte": [2], "ne": [2]}}, [2]),
    ({"n": {"eq": [1, 2], "in": [2, 3]}}, [1]),
    ({"n": {"lte": [2]}}, [0, 1]),
    ({"n": {"between": [2, 3]}}, [1]),
    ({"n": {"between": [3, 2]}}, []),
    ({"n": {"nin": [1, 2]}}, [2]),
    ({"_id": {"eq": ["64b7f0c2a1d3e4f5a6b7c8d9"]}}, [0]),
    ({"_id": {"in": ["64b7f0c2a1d3e4f5a6b7c8da"]}}, [1]),
    ({"d": {"gte": ["2031-01-02"]}}, [2]),
    ({"d": {"between": ["2031-01-01", "2031-01-01"]}}, [0, 1]),
    ({"d": {"between": ["2031-01-01", "2031-01-01T00:00:00Z"]}}, [0]),
    ({"d": {"eq": ["2031-01-01T02:00:00+02:00"]}}, [0]),
    ({"p": {"eq": [0.1]}}, [0]),
    ({"p": {"eq": ["12.5"]}}, [1]),
    ({"p": {"gt": [0.1]}}, [1]),
    ({"p": {"gte": [0.1]}}, [0, 1]),
    ({"p": {"is_null": [True]}}, [2]),
    ({"p": {"not_null": [True]}}, [0, 1]),
    ({"p": {"in": [0.1, None]}}, [0, 2]),
    ({"p": {"nin": [0.1, None]}}, [1]),
    ({"f": {"eq": [0.1]}}, [0]),
    ({"f": {"gt": [0.1]}}, [1, 2]),
    ({"f": {"eq": [7]}}, [2]),
    ({"b": {"eq": [True]}}, [0]),
    ({"b": {"eq": [1]}}, [0]),
    ({"b": {"eq": [None]}}, [2]),
    ({"b": {"ne": [None]}}, [0, 1]),
    ({"u": {"eq": ["00010203-0405-0607-0809-0a0b0c0d0e0f"]}}, [0, 1]),
    ({"m": {"eq": ["5"]}}, [0]),
    ({"m": {"eq": [5]}}, [1]),
    ({"tags": {"eq": ["y"]}}, [0]),
    ({"s": {"like": ["%N%"]}}, [0]),
    ({"s": {"like": ["a.b"]}}, []),
    ({"s": {"like": ["a.b_"]}}, [1]),
    ({"s": {"like": ["axb%"]}}, []),
    ({"s": {"like": ["%"]}}, [0, 1, 2]),
    ({"s": {"like": ["x%", "ana"]}}, [0, 2]),
    ({"s": {"like": ["%\\%\\_\\\\"]}}, [2]),
    ({"s": {"eq": ["x'; DROP TABLE t; --%_\\"]}}, [2]),
    ({"s": {"eq": ["$ne"]}}, []),
    ({"s": {"eq": ["ana"], "gt": ["z"]}}, []),
    ({"s": {"eq": ["ana"]}, "n": {"eq": [2]}}, []),
]
"""Conditions, and which of the people they find."""

REFUSED: Sequence[tuple[Where, str]] = [
    ({"n": {"eq": ["two"]}}, "invalid_filter_value"),
    ({"n": {"like": ["1%"]}}, "invalid_filter_value"),
    ({"d": {"gte": ["yesterday"]}}, "invalid_filter_value"),
    ({"d": {"gte": ["2031-01-01T00:00:00.0001Z"]}}, "invalid_filter_value"),
    ({"_id": {"eq": ["zz"]}}, "invalid_filter_value"),
    ({"b": {"eq": [2]}}, "invalid_filter_value"),
    ({"n": {"between": [1]}}, "invalid_filter"),
    ({"n": {"gt": [None]}}, "invalid_filter"),
    ({"n": {"$where": ["1"]}}, "invalid_filter"),
    ({"s": {"like": [5]}}, "invalid_filter"),
]


@pytest.mark.parametrize("first_field", sorted({next(iter(where)) for where, _ in FOUND}))
async def test_operators(people: Source, opened: RequestEngines, first_field: str) -> None:
    """By field: each session's threads take half a second to end."""
    for where, expected in FOUND:
        if next(iter(where)) == first_field:
            rows_found = await rows_of(opened, to(people), "people", ["_id"], where=exact(where))
            ids = [str(PEOPLE[number]["_id"]) for number in expected]
            assert [row["_id"] for row in rows_found] == ids, where


async def test_filters_that_cannot_be_applied(people: Source, opened: RequestEngines) -> None:
    for where, reason in REFUSED:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, to(people), "people", ["_id"], where=where)
        (column,) = where
        assert (caught.value.reason, caught.value.column) == (reason, column), where
