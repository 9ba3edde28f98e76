"""MongoDB as a source: what is read."""

from collections.abc import Iterator, Sequence
from typing import Any

import pymongo
import pytest
from bson import DatetimeMS, Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.binary import Binary

from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.mongodb import rows, schema
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory
from tests.integration.datasources.harness import (
    TENANT,
    document,
    engines,
    parsed,
    rows_of,
)
from tests.integration.datasources.mongo_sources import Source, Where, exact, to
from tests.unit.datasources.mongodb.golden import GOLDEN

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

OID = ObjectId("64b7f0c2a1d3e4f5a6b7c8d9")
DAY = 86_400_000
START = 1_924_992_000_000  # 2031-01-01


async def test_every_type_arrives_as_the_table_says(source: Source, opened: RequestEngines) -> None:
    kept: dict[str, str] = {}
    for case in GOLDEN:
        try:
            source["types"].insert_one({"_id": case.name, "v": case.value})
        except (pymongo.errors.PyMongoError, ValueError):
            continue  # not every server stores every old type
        kept[case.name] = case.json
    assert len(kept) >= len(GOLDEN) - 4
    for fields in (["*"], ["v"]):
        data = await document(opened, to(source), {"types": fields})
        for name, text in kept.items():
            assert f'{{"_id":"{name}","v":{text}}}'.encode() in data
        assert len(parsed(data)["types"]) == len(kept)


async def test_case_7_a_document_of_many_types(source: Source, opened: RequestEngines) -> None:
    value = {
        "_id": OID,
        "big": Int64(9007199254740993),
        "nan": float("nan"),
        "price": Decimal128("10.00"),
        "at": DatetimeMS(START + 1),
        "raw": Binary(b"\x01\x02\x03"),
        "uid": Binary(bytes(range(16)), 4),
        "stamp": Timestamp(7, 8),
        "pattern": Regex("^a", "i"),
        "nothing": None,
        "items": [{"sku": "x", "refs": [OID]}, {"sku": None}],
    }
    source["case7"].insert_one(value)
    for fields in (["*"], sorted(value)):
        (row,) = await rows_of(opened, to(source), "case7", fields)
        assert row == {
            "_id": str(OID),
            "at": "2031-01-01T00:00:00.001Z",
            "big": 9007199254740993,
            "items": [{"sku": "x", "refs": [str(OID)]}, {"sku": None}],
            "nan": "NaN",
            "nothing": None,
            "pattern": {"Pattern": "^a", "Options": "i"},
            "price": "10.00",
            "raw": "010203",
            "stamp": {"T": 7, "I": 8},
            "uid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        }
        assert list(row) == sorted(row)


async def test_case_8_a_field_of_one_document_in_a_hundred(
    source: Source, opened: RequestEngines
) -> None:
    many = [{"_id": n, "n": n} | ({"rare": f"r{n}"} if n % 100 == 7 else {}) for n in range(9_999)]
    source["case8"].insert_many([*many, {"_id": 9_999, "n": 0, "once": {"deep": True}}])
    found = await rows_of(
        opened, to(source), "case8", ["rare", "once.deep"], where={"rare": {"not_null": [True]}}
    )
    assert len(found) == 100
    assert found[0] == {"_id": 7, "rare": "r7"}
    (row,) = [
        row for row in await rows_of(opened, to(source), "case8", ["once.deep"]) if len(row) > 1
    ]
    assert row == {"_id": 9_999, "once": {"deep": True}}
    engine = opened.engine_for([to(source)], JobOptions(), {"src": {"case8": ("n",)}})
    schema = await engine.discover_schema(TENANT, "src")
    types = {column.name: column.type for column in schema.tables[0].columns}
    assert types["n"] == "number (inferred from 1000 documents)"


async def test_case_8_a_field_that_no_sampled_document_has_filters(
    source: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever type its value then has: nothing of the filter is lost, nothing is refused."""
    source["rarely"].insert_many(
        [
            {"_id": 1, "n": 1, "text": "only here"},
            {"_id": 2, "n": 2, "date": DatetimeMS(START + DAY - 1), "oid": OID},
            {"_id": 3, "n": 3, "deep": {"price": Decimal128("0.1")}, "tags": ["x"]},
            *({"_id": n, "n": n} for n in range(4, 300)),
        ]
    )

    def sampled(database: Source, name: str, *_: object) -> Iterator[dict[str, Any]]:
        yield from database[name].find({"_id": {"$gt": 3}}, limit=100)

    monkeypatch.setattr(schema, "_sampled", sampled)
    expected: Sequence[tuple[Where, list[int]]] = (
        ({"text": {"eq": ["only here"]}}, [1]),
        ({"text": {"ne": ["only here"]}}, [2, 3, *range(4, 300)]),
        ({"date": {"between": ["2031-01-01", "2031-01-01"]}}, [2]),
        ({"oid": {"eq": [str(OID)]}}, [2]),
        ({"deep.price": {"gte": [0.1], "lt": [0.2]}}, [3]),
        ({"tags": {"in": ["x", 5]}}, [3]),
        ({"text": {"eq": ["only here"]}, "n": {"eq": [5]}}, []),
    )
    for where, found in expected:
        rows_found = await rows_of(opened, to(source), "rarely", ["n"], where=exact(where))
        assert [row["_id"] for row in rows_found] == found, where
    with pytest.raises(EngineError) as caught:
        await rows_of(opened, to(source), "rarely", ["n"], where={"nowhere": {"eq": [1]}})
    assert caught.value.category is ErrorCategory.VALIDATION
    with pytest.raises(EngineError) as caught:
        await rows_of(opened, to(source), "rarely", ["n"], where={"date": {"gte": ["soon"]}})
    assert (caught.value.reason, caught.value.column) == ("invalid_filter_value", "date")


async def test_whole_documents_are_more_than_the_sample(
    source: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    source["odd"].insert_many([{"_id": n, "a": 1} for n in range(1200)])
    source["odd"].insert_one({"_id": "last", "only.here": 1, "$dollar": 2})
    found = await rows_of(opened, to(source), "odd", ["*"])
    assert found[-1] == {"_id": "last", "only.here": 1, "$dollar": 2}
    assert len(found) == 1201


async def test_nested_paths_and_their_parents(source: Source, opened: RequestEngines) -> None:
    source["nested"].insert_one(
        {"_id": 1, "geo": {"lat": 1, "at": {"x": {"y": 1}}}, "items": [{"sku": "a", "q": 1}]}
    )
    engine = opened.engine_for([to(source)], JobOptions(), {"src": {"nested": ("_id",)}})
    (table,) = (await engine.discover_schema(TENANT, "src")).tables
    assert table.fields == (
        *("_id", "geo", "geo.at", "geo.at.x", "geo.lat", "items", "items.q", "items.sku"),
    )
    assert table.top_level_fields() == ("_id", "geo", "items")
    assert [column.name for column in table.columns if column.primary_key] == ["_id"]
    assert await rows_of(opened, to(source), "nested", ["geo.lat", "items.sku"]) == [
        {"_id": 1, "geo": {"lat": 1}, "items": [{"sku": "a"}]}
    ]
    (row,) = await rows_of(opened, to(source), "nested", ["geo", "geo.lat"])
    assert row["geo"] == {"lat": 1, "at": {"x": {"y": 1}}}


async def test_an_empty_collection_has_what_is_asked_of_it(
    source: Source, opened: RequestEngines
) -> None:
    source.create_collection("empty")
    assert await rows_of(opened, to(source), "empty", ["*"]) == []
    assert await rows_of(opened, to(source), "empty", ["anything", "a.b"]) == []


async def test_a_field_that_no_document_has_is_refused(
    source: Source, opened: RequestEngines
) -> None:
    source["few"].insert_one({"n": 1})
    for field in ("missing", "$where", "a..b", "n.$"):
        with pytest.raises(EngineError) as caught:
            await document(opened, to(source), {"few": [field]})
        assert caught.value.category is ErrorCategory.VALIDATION


async def test_a_cell_that_is_too_large_names_its_field(source: Source) -> None:
    source["big"].insert_one({"_id": 1, "text": "x" * 3000})
    async with engines(max_cell_bytes=1000) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, to(source), {"big": ["*"]})
    assert (caught.value.reason, caught.value.column) == ("cell_too_large", "text")


async def test_batches_are_bounded_and_complete(
    source: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 150)
    source["wide"].insert_many([{"_id": n, "t": f"{n} " * 200} for n in range(1000)])
    found = await rows_of(opened, to(source), "wide", ["*"])
    assert [row["_id"] for row in found] == list(range(1000))
