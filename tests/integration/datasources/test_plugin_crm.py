"""plugin_crm on a MongoDB-compatible server: spec datasources 15 and 19.11."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pymongo
import pytest
from bson import Int64, ObjectId
from pymongo.database import Database

from fetcher.crypto.sealed_fields import SealedFieldKeys
from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.mongodb import rows
from fetcher.domain.connections import Connection, Origin, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest
from tests.integration.datasources.harness import TENANT, Filters, a_connection, document, engines
from tests.integration.datasources.relay import relay
from tests.unit.datasources.plugin_crm.sealing import (
    ANA,
    ENCRYPT_SECRET,
    HASH_SECRET,
    KEYS,
    hashed,
    sealed,
)

pytestmark = pytest.mark.integration

Source = Database[dict[str, Any]]
Fields = Mapping[str, Sequence[str]]
Where = Mapping[str, Mapping[str, Sequence[object]]]

ACME = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"
BETA = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0c"
OID = ObjectId("64b7f0c2a1d3e4f5a6b7c8d9")


def holder(number: int, name: str, document: str, **other: Any) -> dict[str, Any]:
    """As the product stores one."""
    return {
        "_id": number,
        "name": sealed(name),
        "document": sealed(document),
        "search": {"name": hashed(name), "document": hashed(document)},
        "status": "active",
        "n": Int64(9007199254740993 + number),
        **other,
    }


def email(address: str) -> dict[str, Any]:
    return {
        "contact": {"primary_email": sealed(address), "fax": "123"},
    }


@pytest.fixture(scope="module")
def client(mongo_uri: str) -> Iterator["pymongo.MongoClient[dict[str, Any]]"]:
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as opened:
        yield opened


@pytest.fixture(scope="module")
def crm(client: "pymongo.MongoClient[dict[str, Any]]", mongo_database_of_module: str) -> Source:
    source = client[mongo_database_of_module]
    source[f"holders_{ACME}"].insert_many(
        [
            holder(1, "Ana Lima", "98765432100", **email("ana@lima.test")),
            holder(2, "Größe", "111", status="closed", contact="a text"),
        ]
    )
    source[f"holders_{BETA}"].insert_many(
        [
            holder(3, "Bo", "222", tags=["x", {"name": ANA}], ref=OID),
            {"_id": 4, "name": "", "document": None, "status": "active", "search": {}},
            {"_id": 5, "name": 7, "natural_person": {"mother_name": sealed("Eva"), "age": 1}},
        ]
    )
    source[f"holders_history_{ACME}"].insert_one({"_id": 9, "name": "not sealed"})
    source["holders"].insert_one({"_id": 10, "name": "not sealed"})
    source[f"alias_{ACME}"].insert_one(
        {"_id": 6, "banking_details": {"account": sealed("0001"), "bank": "7"}}
    )
    source["legacy_a1"].insert_one({"_id": 1})
    source["legacy_b2"].insert_one({"_id": 2})
    source["broken_a"].insert_many([{"_id": n, "name": sealed("x")} for n in range(2)])
    source["broken_b"].insert_many([{"_id": 2, "name": f"{ANA[:-4]}AAAA"}, {"_id": 3, "name": ""}])
    return source


@pytest.fixture
async def opened() -> AsyncIterator[RequestEngines]:
    async with engines(sealed_field_keys=KEYS) as started:
        yield started


def to(source: Source, **changes: Any) -> Connection:
    host, port = source.client.address or ("", 0)
    made = a_connection(source_type=SourceType.MONGODB, host=host, port=port, database=source.name)
    internal = replace(made, config_name="plugin_crm", origin=Origin.INTERNAL)
    return replace(internal, encryption_key_version="", **changes)


async def read(
    opened: RequestEngines, connection: Connection, fields: Fields, filters: Filters | None = None
) -> dict[str, list[dict[str, Any]]]:
    data = await document(opened, connection, fields, filters=filters)
    tables: dict[str, list[dict[str, Any]]] = json.loads(data)["plugin_crm"]
    return tables


async def ids(opened: RequestEngines, crm: Source, where: Where) -> list[int]:
    tables = await read(opened, to(crm), {"holders": ["_id"]}, {"holders": where})
    return [row["_id"] for row in tables["holders"]]


async def failure_of(
    keys: SealedFieldKeys, connection: Connection, fields: Fields, filters: Filters | None = None
) -> EngineError:
    async with engines(sealed_field_keys=keys) as opened:
        with pytest.raises(EngineError) as caught:
            await read(opened, connection, fields, filters)
    told = repr((caught.value, vars(caught.value), caught.value.__context__))
    # organisations are in the names of collections, which nobody asked for
    for secret in (HASH_SECRET, ENCRYPT_SECRET, ANA[:20], ACME, connection.host):
        assert secret not in told
    return caught.value


async def test_every_organisations_documents_are_one_table_in_the_order_of_their_names(
    crm: Source, opened: RequestEngines
) -> None:
    data = await document(opened, to(crm), {"holders": ["n", "name"], "alias": ["_id"]})
    assert json.loads(data) == {
        "plugin_crm": {
            "alias": [{"_id": 6}],
            "holders": [
                {"_id": 1, "n": 9007199254740994, "name": "Ana Lima"},
                {"_id": 2, "n": 9007199254740995, "name": "Größe"},
                {"_id": 3, "n": 9007199254740996, "name": "Bo"},
                {"_id": 4, "name": ""},
                {"_id": 5, "name": 7},
            ],
        }
    }


async def test_names_without_organisations_ids_go_by_their_prefix(
    crm: Source, opened: RequestEngines
) -> None:
    found = await read(opened, to(crm), {"legacy": ["_id"]})
    assert found == {"legacy": [{"_id": 1}, {"_id": 2}]}


@pytest.mark.parametrize("stated", [BETA, f" {BETA},nobody", [BETA]])
async def test_a_connection_may_name_the_organisations(
    crm: Source, opened: RequestEngines, stated: object
) -> None:
    connection = to(crm, metadata={"organizationIds": stated})
    found = await read(opened, connection, {"holders": ["_id"]})
    assert [row["_id"] for row in found["holders"]] == [3, 4, 5]


@pytest.mark.parametrize("stated", ["", "a,,b", [], [1], 7, None])
async def test_organisations_that_cannot_be_read_are_not_all_of_them(
    crm: Source, stated: object
) -> None:
    connection = to(crm, metadata={"organizationIds": stated})
    error = await failure_of(KEYS, connection, {"holders": ["_id"]})
    assert error.category is ErrorCategory.VALIDATION
    assert "organizationIds" in error.message


@pytest.mark.parametrize("logical", ["nothing", "holder", "Holders", f"holders_{BETA}"])
async def test_a_logical_collection_that_nobody_has(crm: Source, logical: str) -> None:
    error = await failure_of(KEYS, to(crm), {logical: ["_id"]})
    assert error.category is ErrorCategory.VALIDATION
    assert [(f.type, f.table) for f in error.failures] == [("table_not_found", logical)]


async def test_one_that_goes_away_between_plan_and_read_is_a_changed_schema(
    crm: Source, opened: RequestEngines
) -> None:
    crm["going_a"].insert_one({"_id": 1})
    engine = opened.engine_for([to(crm)], JobOptions(), {"plugin_crm": {"going": ("_id",)}})
    request = ExtractionRequest(mapped_fields={"plugin_crm": {"going": ["_id"]}})
    plan = await engine.plan_extraction(TENANT, request)
    crm["going_a"].drop()
    with pytest.raises(EngineError) as caught:
        await engine.execute_extraction(plan)
    assert (caught.value.stage, caught.value.reason) == ("schema", "schema changed")


async def test_of_another_type_it_is_a_source_like_any_other() -> None:
    """Row 'non-Mongo plugin_crm: Engine path'."""
    async with engines() as opened:
        with pytest.raises(EngineError) as caught:
            await read(
                opened,
                replace(a_connection(source_type=SourceType.SQLITE), config_name="plugin_crm"),
                {"holders": ["_id"]},
            )
    assert caught.value.message == "no connector registered for datasource type SQLITE"


async def test_under_another_name_it_is_mongodb_as_it_is(
    crm: Source, opened: RequestEngines
) -> None:
    connection = replace(to(crm), config_name="my_plugin_crm")
    data = await document(opened, connection, {"holders": ["name"], f"alias_{ACME}": ["_id"]})
    assert json.loads(data) == {
        "my_plugin_crm": {
            f"alias_{ACME}": [{"_id": 6}],
            "holders": [{"_id": 10, "name": "not sealed"}],
        }
    }


# --- what is decrypted -----------------------------------------------------------------------


async def test_fields_that_show_nothing_sealed_need_no_key(crm: Source) -> None:
    async with engines() as opened:
        found = await read(opened, to(crm), {"holders": ["status", "contact.fax"]})
    assert found["holders"][0] == {"_id": 1, "status": "active", "contact": {"fax": "123"}}


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        (["document"], {"document": "98765432100"}),
        (["contact.primary_email"], {"contact": {"primary_email": "ana@lima.test"}}),
        (["contact"], {"contact": {"primary_email": "ana@lima.test", "fax": "123"}}),
        (
            ["contact", "contact.primary_email"],
            {"contact": {"primary_email": "ana@lima.test", "fax": "123"}},
        ),
    ],
)
async def test_what_is_shown_is_opened_by_itself_or_by_its_parent(
    crm: Source, opened: RequestEngines, fields: list[str], first: dict[str, Any]
) -> None:
    found = await read(opened, to(crm), {"holders": fields})
    assert found["holders"][0] == {"_id": 1, **first}


async def test_whole_documents_are_opened_and_else_as_they_are(
    crm: Source, opened: RequestEngines
) -> None:
    found = await read(opened, to(crm), {"holders": ["*"]})
    assert found["holders"][1:] == [
        {
            "_id": 2,
            "name": "Größe",
            "document": "111",
            "search": {"name": hashed("Größe"), "document": hashed("111")},
            "status": "closed",
            "n": 9007199254740995,
            "contact": "a text",
        },
        {
            "_id": 3,
            "name": "Bo",
            "document": "222",
            "search": {"name": hashed("Bo"), "document": hashed("222")},
            "status": "active",
            "n": 9007199254740996,
            "tags": ["x", {"name": ANA}],
            "ref": str(OID),
        },
        {"_id": 4, "name": "", "document": None, "status": "active", "search": {}},
        {"_id": 5, "name": 7, "natural_person": {"mother_name": "Eva", "age": 1}},
    ]


async def test_a_field_of_the_product_that_nobody_filled_in_yet_is_no_mistake(
    crm: Source, opened: RequestEngines
) -> None:
    found = await read(opened, to(crm), {"alias": ["contact.other_phone", "document"]})
    assert found == {"alias": [{"_id": 6}]}
    error = await failure_of(KEYS, to(crm), {"alias": ["documnet"]})
    assert [(f.type, f.field) for f in error.failures] == [("field_not_found", "documnet")]


async def test_a_field_of_one_late_organisation_is_found(
    crm: Source, opened: RequestEngines
) -> None:
    for number in range(14):
        crm[f"many_{number:02}"].insert_one({"_id": number} | ({"rare": 1} if number == 13 else {}))
    found = await read(opened, to(crm), {"many": ["rare"]})
    assert found["many"][13] == {"_id": 13, "rare": 1}
    assert len(found["many"]) == 14


async def test_a_broken_record_names_its_number_and_field(crm: Source) -> None:
    error = await failure_of(KEYS, to(crm), {"broken": ["name"]})
    assert (error.stage, error.reason) == ("rows", "decryption_failed record_3")
    assert (error.table, error.column) == ("broken", "name")
    other = SealedFieldKeys(hash_secret=HASH_SECRET, encrypt_secret="ff" * 32)
    error = await failure_of(other, to(crm), {"holders": ["contact"]})
    assert (error.reason, error.column) == ("decryption_failed record_1", "contact.primary_email")


FILTERED: Filters = {"holders": {"status": {"eq": ["active"]}}}


@pytest.mark.parametrize(
    ("keys", "fields", "filters", "reason"),
    [
        (SealedFieldKeys(), ["document"], None, "encrypt_key_missing"),
        (replace(KEYS, encrypt_secret=""), ["document"], None, "encrypt_key_missing"),
        (replace(KEYS, hash_secret=""), ["document"], None, "hash_key_missing"),
        (SealedFieldKeys(), ["status"], FILTERED, "hash_key_missing"),
        (SealedFieldKeys(), ["document"], FILTERED, "hash_key_missing"),
        (replace(KEYS, encrypt_secret="xyz"), ["document"], None, "encrypt_key_unusable"),
        (replace(KEYS, encrypt_secret="00" * 20), ["contact"], None, "encrypt_key_unusable"),
        (replace(KEYS, encrypt_secret=""), ["*"], None, "encrypt_key_missing"),
    ],
)
async def test_keys_that_are_missing_or_none(
    crm: Source, keys: SealedFieldKeys, fields: list[str], filters: Filters | None, reason: str
) -> None:
    error = await failure_of(keys, to(crm), {"holders": fields}, filters)
    assert (error.stage, error.reason, error.table) == ("query", reason, "holders")


# --- filters ---------------------------------------------------------------------------------


async def test_filters_on_sealed_fields_are_answered_by_their_hashes(
    crm: Source, opened: RequestEngines
) -> None:
    cases: Sequence[tuple[Where, list[int]]] = (
        ({"document": {"eq": ["98765432100"]}}, [1]),
        ({"document": {"eq": [" 98765432100"]}}, []),
        ({"name": {"in": ["Größe", "Bo", "nobody"]}}, [2, 3]),
        ({"name": {"in": ["Größe", 7, "", None]}}, [2, 4, 5]),
        ({"name": {"ne": ["Ana Lima"]}}, [2, 3, 4, 5]),
        ({"name": {"nin": ["Ana Lima", None]}}, [2, 3]),
        ({"document": {"is_null": [True]}}, [4, 5]),
        ({"document": {"not_null": [True]}}, [1, 2, 3]),
        ({"name": {"not_null": [True], "ne": ["Bo"]}}, [1, 2, 4, 5]),
        ({"name": {"is_null": [True]}}, []),
        ({"name": {"eq": ["Bo"]}, "status": {"eq": ["closed"]}}, []),
    )
    for where, expected in cases:
        assert await ids(opened, crm, where) == expected, where


async def test_other_fields_are_filtered_as_they_are(crm: Source, opened: RequestEngines) -> None:
    cases: Sequence[tuple[Where, list[int]]] = (
        ({"status": {"eq": ["closed"]}}, [2]),
        ({"status": {"like": ["ACT%"]}}, [1, 3, 4]),
        ({"n": {"gt": [9007199254740995]}}, [3]),
        ({"n": {"eq": ["9007199254740996"]}}, [3]),
        ({"ref": {"eq": [str(OID)]}}, [3]),
        ({"search.document": {"eq": [hashed("222")]}}, [3]),
        ({"natural_person.mother_name": {"not_null": [True]}}, [5]),
    )
    for where, expected in cases:
        assert await ids(opened, crm, where) == expected, where


@pytest.mark.parametrize(
    ("field", "condition", "reason"),
    [
        ("document", {"like": ["9%"]}, "invalid_filter"),
        ("document", {"gt": ["9"]}, "invalid_filter"),
        ("name", {"between": ["A", "B"]}, "invalid_filter"),
        ("natural_person.mother_name", {"eq": ["Eva"]}, "invalid_filter"),
        ("document", {"eq": ["\ud800"]}, "invalid_filter_value"),
        ("document", {"not_null": ["yes"]}, "invalid_filter"),
        ("n", {"gt": ["much"]}, "invalid_filter_value"),
    ],
)
async def test_filters_that_cannot_be_answered(
    crm: Source, field: str, condition: Mapping[str, Sequence[object]], reason: str
) -> None:
    error = await failure_of(KEYS, to(crm), {"holders": ["_id"]}, {"holders": {field: condition}})
    assert error.category is ErrorCategory.VALIDATION
    assert (error.reason, error.table, error.column) == (reason, "holders", field)


# --- like any other source -------------------------------------------------------------------


async def test_without_a_request_the_schema_is_what_lies_in_the_database(
    crm: Source, opened: RequestEngines
) -> None:
    """What validation maps logical names to (spec engine 17.8)."""
    schema = await opened.engine_for([to(crm)], JobOptions()).discover_schema(TENANT, "plugin_crm")
    names = [table.name for table in schema.tables]
    assert {"holders", f"holders_{ACME}", f"holders_{BETA}", f"alias_{ACME}"} <= set(names)
    assert names == sorted(names)


async def test_rows_are_estimated_over_all_organisations(
    crm: Source, opened: RequestEngines
) -> None:
    engine = opened.engine_for([to(crm)], JobOptions(), {"plugin_crm": {"holders": ("*",)}})
    (table,) = (await engine.discover_schema(TENANT, "plugin_crm")).tables
    counts = [crm[f"holders_{organisation}"].count_documents({}) for organisation in (ACME, BETA)]
    assert all(counts)
    assert table.estimated_rows == sum(counts)


async def test_a_mixed_job_has_both_sources(crm: Source, opened: RequestEngines) -> None:
    plain = replace(to(crm), config_name="copy", id=a_connection().id)
    engine = opened.engine_for([to(crm), plain], JobOptions())
    fields = {"plugin_crm": {"alias": ["banking_details.account"]}, "copy": {"holders": ["name"]}}
    requested = {c: {t: tuple(f) for t, f in tables.items()} for c, tables in fields.items()}
    engine = opened.engine_for([to(crm), plain], JobOptions(), requested)
    plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=fields))
    result = await engine.execute_extraction(plan)
    assert result.direct is not None
    assert json.loads(result.direct.data) == {
        "copy": {"holders": [{"_id": 10, "name": "not sealed"}]},
        "plugin_crm": {"alias": [{"_id": 6, "banking_details": {"account": "0001"}}]},
    }


async def test_batches_are_bounded_and_complete_over_all_organisations(
    crm: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 100)
    for part in range(3):
        crm[f"big_{part}"].insert_many(
            [{"_id": part * 400 + n, "name": sealed(f"{n} " * 100)} for n in range(400)]
        )
    found = await read(opened, to(crm), {"big": ["name"]})
    assert found["big"] == [
        {"_id": part * 400 + n, "name": f"{n} " * 100} for part in range(3) for n in range(400)
    ]


@asynccontextmanager
async def cut_after(source: Source, size: int) -> AsyncIterator[Connection]:
    host, port = source.client.address or ("", 0)
    async with relay(host, port, cut_after=size) as between:
        yield to(source, host="127.0.0.1", port=between.port)
        assert between.reached.is_set()


async def test_a_cut_connection_fails_the_job(crm: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 200)
    for part in range(2):
        crm[f"long_{part}"].insert_many(
            [{"_id": n, "name": sealed("x"), "t": "y" * 900} for n in range(1500)]
        )
    # discovery reads 1 000 documents of each first
    async with cut_after(crm, 2_100_000 + 1_800_000) as connection:
        error = await failure_of(KEYS, connection, {"long": ["*"]})
    assert (error.stage, error.reason) == ("rows", "reset")
