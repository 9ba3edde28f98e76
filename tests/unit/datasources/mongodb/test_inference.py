"""What a sample tells (spec datasources 6.6)."""

from typing import Any

import pytest
from bson import Binary, DatetimeMS, Decimal128, Int64, MinKey, ObjectId, Regex, Timestamp

from fetcher.datasources.mongodb import inference
from fetcher.datasources.mongodb.connector import auth_source_of
from fetcher.datasources.mongodb.errors import UNSUPPORTED_NAME
from fetcher.datasources.mongodb.inference import Inferred
from fetcher.datasources.mongodb.query import prepare_query
from fetcher.datasources.mongodb.schema import sample_size
from fetcher_engine import SourceFailure


def inferred(*documents: dict[str, Any]) -> Inferred:
    found = Inferred()
    found.look_at(documents)
    return found


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("x", "string"),
        (7, "number"),
        (Int64(7), "number"),
        (7.5, "number"),
        (True, "boolean"),
        (None, "unknown"),
        ([], "array"),
        ({}, "object"),
        (DatetimeMS(0), "date"),
        (ObjectId(), "objectId"),
        (b"x", "binData"),
        (Binary(b"x", 4), "binData"),
        (Regex("x"), "regex"),
        (Timestamp(1, 1), "timestamp"),
        (Decimal128("1"), "decimal"),
        (MinKey(), "minKey/maxKey"),
    ],
)
def test_labels(value: object, label: str) -> None:
    assert inferred({"f": value}).label("f") == label


def test_differing_types_are_all_kept() -> None:
    assert inferred({"f": 1}, {"f": "x"}, {"f": None}, {}).label("f") == "number|string"
    assert inferred({"f": 1}, {"f": ObjectId()}).label("f") == "number|objectId"
    assert inferred({"f": ObjectId()}, {"f": 1}).label("f") == "number|objectId"
    assert inferred({"f": "x"}, {"f": True}).label("f") == "boolean|string"


def test_paths_to_the_third_level_through_arrays_of_objects() -> None:
    found = inferred({"a": {"b": {"c": {"d": 1}}}, "items": [{"sku": 1}, {"q": {"x": 1}}, 3]})
    assert list(found.types) == [
        *("a", "a.b", "a.b.c", "items", "items.sku", "items.q", "items.q.x"),
    ]


def test_names_that_no_path_can_tell_are_left_out() -> None:
    assert list(inferred({"a.b": 1, "$x": 1, "": 1, "c": {"$d": 1, "e": 1}}).types) == ["c", "c.e"]


def test_paths_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "MAX_PATHS", 3)
    found = inferred({str(n): n for n in range(5)}, {"0": "x"})
    assert (len(found.types), found.is_truncated) == (3, True)
    assert found.label("0") == "number|string"


@pytest.mark.parametrize(
    ("count", "size"),
    [
        (0, 0),
        (1, 1),
        (1000, 1000),
        (1001, 1000),
        (10_000, 1000),
        (10_001, 2000),
        (100_000, 2000),
        (100_001, 5000),
        (1_000_000, 5000),
        (1_000_001, 10_000),
    ],
)
def test_sample_sizes(count: int, size: int) -> None:
    assert sample_size(count) == size


def test_a_part_of_what_is_asked_for_whole_is_not_asked_for_again() -> None:
    query = prepare_query(name="t", fields=["a.b", "a", "ab.c", "x.y.z"], filters={}, types={})
    assert query.projection == {"a": 1, "ab.c": 1, "x.y.z": 1}
    assert prepare_query(name="t", fields=(), filters={}, types={}).projection is None


@pytest.mark.parametrize("name", ["$where", "a.$", "a..b", "", "a\0", "a.$b"])
def test_names_that_mongodb_reads_otherwise_are_refused(name: str) -> None:
    for fields, filters in (([name], {}), ([], {name: {"eq": [1]}})):
        with pytest.raises(SourceFailure) as caught:
            prepare_query(name="t", fields=fields, filters=filters, types={})
        assert caught.value.reason == UNSUPPORTED_NAME


def test_where_a_user_is_known() -> None:
    assert auth_source_of({}, database="crm_7", is_internal=False) == "admin"
    assert auth_source_of({}, database="crm_7", is_internal=True) == "crm_7"
    stated = {"authSource": "auth7"}
    assert auth_source_of(stated, database="x", is_internal=True) == "auth7"
    assert auth_source_of({"authSource": " "}, database="x", is_internal=False) == "admin"
