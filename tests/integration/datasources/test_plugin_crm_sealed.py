"""plugin_crm: what is decrypted, and filters on it (spec datasources 15)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fetcher.crypto.sealed_fields import SealedFieldKeys
from fetcher.datasources.engines import RequestEngines
from fetcher_engine import ErrorCategory
from tests.integration.datasources.crm_database import (
    OID,
    Source,
    Where,
    failure_of,
    fill,
    ids,
    read,
    to,
)
from tests.integration.datasources.harness import Filters, engines
from tests.unit.datasources.plugin_crm.sealing import (
    ANA,
    HASH_SECRET,
    KEYS,
    hashed,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def crm(source: Source) -> Source:
    fill(source)
    return source


@pytest.fixture
async def opened() -> AsyncIterator[RequestEngines]:
    async with engines(sealed_field_keys=KEYS) as started:
        yield started


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
