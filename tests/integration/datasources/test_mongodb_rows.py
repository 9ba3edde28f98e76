"""MongoDB as a source: what is read, filtered, cut and cancelled."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pymongo
import pytest
import trio
from bson import DatetimeMS, Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.binary import Binary
from pymongo.database import Database
from pymongo.errors import OperationFailure

from fetcher.datasources.connecting import TableStream
from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.mongodb import connector, rows, schema
from fetcher.datasources.mongodb.connect import MongoSession, open_session
from fetcher.datasources.mongodb.connector import CollectionReader
from fetcher.datasources.mongodb.factory import MongodbFactory
from fetcher.datasources.records import descriptor_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest, StreamRequest
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    document,
    engines,
    parsed,
    rows_of,
)
from tests.integration.datasources.relay import relay
from tests.unit.datasources.mongodb.golden import GOLDEN

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

Source = Database[dict[str, Any]]
OID = ObjectId("64b7f0c2a1d3e4f5a6b7c8d9")
DAY = 86_400_000
START = 1_924_992_000_000  # 2031-01-01


@pytest.fixture(scope="module")
def client(mongo_uri: str) -> Iterator["pymongo.MongoClient[dict[str, Any]]"]:
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as opened:
        opened.admin.command("ping")
        yield opened


@pytest.fixture(scope="module")
def source(client: "pymongo.MongoClient[dict[str, Any]]", mongo_database_of_module: str) -> Source:
    return client[mongo_database_of_module]


@pytest.fixture
async def opened() -> AsyncIterator[RequestEngines]:
    async with engines() as started:
        yield started


def to(source: Source, **changes: Any) -> Connection:
    host, port = source.client.address or ("", 0)
    settings = {"host": host, "port": port, "database": source.name, **changes}
    return a_connection(source_type=SourceType.MONGODB, **settings)


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
        rows_found = await rows_of(opened, to(source), "rarely", ["n"], where=_exact(where))
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


# --- filters --------------------------------------------------------------------------------

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


Where = Mapping[str, Mapping[str, Sequence[Any]]]

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


def _exact(where: Where) -> Where:
    """As requests have it: fractions are decimals."""
    return {
        field: {
            operator: [Decimal(str(value)) if isinstance(value, float) else value for value in each]
            for operator, each in condition.items()
        }
        for field, condition in where.items()
    }


@pytest.mark.parametrize("first_field", sorted({next(iter(where)) for where, _ in FOUND}))
async def test_operators(people: Source, opened: RequestEngines, first_field: str) -> None:
    """By field: each session's threads take half a second to end."""
    for where, expected in FOUND:
        if next(iter(where)) == first_field:
            rows_found = await rows_of(opened, to(people), "people", ["_id"], where=_exact(where))
            ids = [str(PEOPLE[number]["_id"]) for number in expected]
            assert [row["_id"] for row in rows_found] == ids, where


async def test_filters_that_cannot_be_applied(people: Source, opened: RequestEngines) -> None:
    for where, reason in REFUSED:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, to(people), "people", ["_id"], where=where)
        (column,) = where
        assert (caught.value.reason, caught.value.column) == (reason, column), where


# --- ends -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(source: Source) -> Source:
    source["many"].insert_many([{"_id": n, "t": "x" * 900} for n in range(5000)])
    return source


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
async def test_case_14_a_cut_connection_fails_the_job(
    many: Source, opened: RequestEngines, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    host, port = many.client.address or ("", 0)
    async with relay(host, port, cut_after=1_000_000 + int(5000 * 930 * share)) as between:
        connection = to(many, host="127.0.0.1", port=between.port)
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"many": ["*"]})
        assert between.reached.is_set()
    assert (caught.value.stage, caught.value.reason) == ("rows", "reset")


async def test_case_13_silence_in_mid_rows_ends_by_its_deadline(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    monkeypatch.setattr(connector, "NO_PROGRESS_SECONDS", 0.5)
    host, port = many.client.address or ("", 0)
    async with relay(host, port, silent_after=2_500_000) as between:
        connection = to(many, host="127.0.0.1", port=between.port)
        with trio.fail_after(8), pytest.raises(EngineError) as caught:
            await document(opened, connection, {"many": ["*"]})
    assert (caught.value.stage, caught.value.reason) == ("rows", "timeout")


async def test_a_cancelled_job_ends_at_once_in_mid_read(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    host, port = many.client.address or ("", 0)
    async with relay(host, port, silent_after=2_500_000) as between:
        connection = to(many, host="127.0.0.1", port=between.port)
        with trio.fail_after(10), trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def read(task: Callable[..., Any]) -> None:
                    await task(opened, connection, {"many": ["*"]})

                nursery.start_soon(read, document)
                await between.reached.wait()
                scope.cancel()
                cancelled_at = trio.current_time()
        assert trio.current_time() - cancelled_at < 4


async def test_what_is_left_unread_is_ended_on_the_server(
    many: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    settings = SourceSettings(decrypt=lambda stored, _: stored)
    scope = RequestScope(options=JobOptions(), requested=None)
    record = to(many)
    source = MongodbFactory(settings, SessionLimits(), scope).build(descriptor_of(record))
    await source.test_connection()
    stream = await source.open_stream(
        StreamRequest(config_name="src", tables={"many": ("t",)}, filters={})
    )
    assert isinstance(stream, TableStream)
    batch = await stream.next_batch()
    assert batch is not None
    assert isinstance(stream._reader, CollectionReader)
    assert stream._reader._rows is not None
    cursor = stream._reader._rows._cursor.cursor_id
    assert cursor
    await stream.aclose()
    await source.close()
    with pytest.raises(OperationFailure) as caught:
        many.command({"getMore": Int64(cursor), "collection": "many"})
    assert caught.value.code in (43, 13)  # gone, or another session's


async def test_a_collection_that_went_away_is_a_changed_schema(
    source: Source, opened: RequestEngines
) -> None:
    source["going"].insert_one({"_id": 1})
    engine = opened.engine_for([to(source)], JobOptions(), {"src": {"going": ("_id",)}})
    plan = await engine.plan_extraction(
        TENANT, ExtractionRequest(mapped_fields={"src": {"going": ["_id"]}})
    )
    source["going"].drop()
    with pytest.raises(EngineError) as caught:
        await engine.execute_extraction(plan)
    assert (caught.value.stage, caught.value.reason) == ("schema", "schema changed")


# --- sessions -------------------------------------------------------------------------------


async def test_the_next_job_reads_in_the_same_session(
    people: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[MongoSession] = []

    async def counted(*arguments: Any, **keywords: Any) -> MongoSession:
        made.append(await open_session(*arguments, **keywords))
        return made[-1]

    monkeypatch.setattr(connector, "open_session", counted)
    connection = to(people)
    for _ in range(2):
        assert len(await rows_of(opened, connection, "people", ["_id"])) == len(PEOPLE)
    assert len(made) == 1
    made[0].hello = {**made[0].hello, "isWritablePrimary": "no more"}
    assert len(await rows_of(opened, connection, "people", ["_id"])) == len(PEOPLE)
    assert len(made) == 2, "one whose server changed its role is replaced"
    made[1].client.close()
    assert len(await rows_of(opened, connection, "people", ["_id"])) == len(PEOPLE)
    assert len(made) == 3, "one that is broken is replaced"
