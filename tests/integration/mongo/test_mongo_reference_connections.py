"""Connections of the reference: listed, patched, assigned and deleted, and what then lies there."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from bson import Binary, Decimal128, Int64
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.connections import (
    Connection,
    ConnectionQuery,
    SourceType,
    TlsSettings,
    UpdateAnswer,
)
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import ConnectionId
from tests.integration.mongo.builders import a_connection
from tests.integration.mongo.reference import (
    CONNECTION_ID,
    CREATED,
    ENDED,
    reference_connection,
    typed,
)

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration

LATER = ENDED + timedelta(hours=1)
ABSENT = object()
OLD_VARIANTS: list[dict[str, Any]] = [
    {},
    {"product_name": ABSENT, "schema": ABSENT, "ssl": ABSENT, "metadata": ABSENT},
    {"product_name": None, "schema": "", "metadata": {}},
    {"product_name": "", "ssl": {"mode": "require"}, "metadata": {"rank": 3.0, "share": 0.25}},
    {"ssl": {"mode": "verify-ca", "ca": "CA", "cert": "CERT", "key": "-----BEGIN"}},
    {"_id": Binary(CONNECTION_ID.bytes, 4), "product_name": ABSENT},
]


def insert(raw: Raw, **changes: Any) -> dict[str, Any]:
    document = reference_connection(**changes)
    document = {name: value for name, value in document.items() if value is not ABSENT}
    raw["connection"].insert_one(document)
    return document


def the_document(raw: Raw) -> dict[str, Any]:
    [document] = raw["connection"].find()
    return document


async def the_connection(records: MongoRecords) -> Connection:
    found = await records.connections.get(CONNECTION_ID)
    assert found is not None
    return found


@pytest.mark.parametrize("variant", OLD_VARIANTS)
async def test_every_variant_is_listed_as_it_is_read(
    records: MongoRecords, raw: Raw, variant: dict[str, Any]
) -> None:
    insert(raw, **variant)
    connection = await the_connection(records)
    page = await records.connections.list_page(
        ConnectionQuery(type="POSTGRESQL", host="pg1.acme.test", database_name="sales")
    )
    assert (page.items, page.total) == ((connection,), 1)
    of_product = await records.connections.list_page(ConnectionQuery(product_name="ACME-reports"))
    unassigned = await records.connections.list_page(ConnectionQuery(unassigned=True))
    is_assigned = "product_name" not in variant
    assert (of_product.total, unassigned.total) == (int(is_assigned), int(not is_assigned))


@pytest.mark.parametrize("variant", OLD_VARIANTS)
async def test_a_patch_sets_what_the_reference_sets_and_null_where_nothing_is(
    records: MongoRecords, raw: Raw, variant: dict[str, Any]
) -> None:
    before = insert(raw, **variant)
    connection = await the_connection(records)
    patched = replace(connection, host="pg2.acme.test", port=5433, updated_at=LATER)
    answer = await records.connections.update(patched, before=connection)
    assert answer is UpdateAnswer.WRITTEN
    ssl, metadata = before.get("ssl"), before.get("metadata")
    expected = before | {
        "host": "pg2.acme.test",
        "port": 5433,
        "updated_at": LATER,
        "schema": before.get("schema"),
        "ssl": ssl,
        "metadata": {"rank": 3, "share": Decimal128("0.25")} if metadata else None,
    }
    assert typed(the_document(raw)) == typed(expected)
    assert await the_connection(records) == patched


@pytest.mark.parametrize("variant", OLD_VARIANTS)
async def test_a_new_seal_changes_what_is_sealed_and_nothing_else(
    records: MongoRecords, raw: Raw, variant: dict[str, Any]
) -> None:
    before = insert(raw, **variant)
    connection = await the_connection(records)
    sealed = replace(connection, password_encrypted="bmV3", encryption_key_version="2")
    answer = await records.credentials.reseal(sealed, before=connection)
    assert answer is UpdateAnswer.WRITTEN
    new = {"password_encrypted": "bmV3", "encryption_key_version": "2"}
    assert typed(the_document(raw)) == typed(before | new)


async def test_a_record_that_cannot_be_read_has_a_name_all_the_same(
    records: MongoRecords, raw: Raw
) -> None:
    insert(raw, _id="no uuid", config_name="odd_db")
    insert(raw, config_name=7, port="no port")
    names = await records.credentials.list_names()
    assert sorted((each.config_name, each.id) for each in names) == [
        ("", CONNECTION_ID),
        ("odd_db", None),
    ]


async def test_a_patch_of_everything_has_these_types(records: MongoRecords, raw: Raw) -> None:
    before = insert(raw, schema="old", ssl={"mode": "require"}, metadata={"old": 1.0})
    connection = await the_connection(records)
    patched = replace(
        connection,
        config_name="renamed_db",
        type=SourceType.SQL_SERVER,
        host="ms1.acme.test",
        port=1433,
        database_name="crm",
        schema="dbo",
        username="scott",
        password_encrypted="b3RoZXI=",
        encryption_key_version="2",
        tls=TlsSettings(mode="true", ca="CA"),
        metadata={"i": 1, "l": 2**40, "d": Decimal("0.10"), "deep": {"a.b": [None, True, "x"]}},
        updated_at=LATER,
        product_name="somebody else's",
        created_at=LATER,
    )
    assert await records.connections.update(patched, before=connection) is UpdateAnswer.WRITTEN
    assert typed(the_document(raw)) == typed(
        {
            "_id": CONNECTION_ID.bytes,
            "product_name": before["product_name"],
            "config_name": "renamed_db",
            "type": "SQL_SERVER",
            "host": "ms1.acme.test",
            "port": 1433,
            "database_name": "crm",
            "schema": "dbo",
            "username": "scott",
            "password_encrypted": "b3RoZXI=",
            "encryption_key_version": "2",
            "ssl": {"mode": "true", "ca": "CA"},
            "metadata": {
                "i": 1,
                "l": Int64(2**40),
                "d": Decimal128("0.10"),
                "deep": {"a.b": [None, True, "x"]},
            },
            "created_at": CREATED,
            "updated_at": LATER,
            "deleted_at": None,
        }
    )


async def test_a_patch_that_takes_away_leaves_nulls(records: MongoRecords, raw: Raw) -> None:
    before = insert(raw, schema="s", ssl={"mode": "require"}, metadata={"a": 1.0})
    connection = await the_connection(records)
    bare = replace(connection, schema=None, tls=None, metadata={}, updated_at=LATER)
    assert await records.connections.update(bare, before=connection) is UpdateAnswer.WRITTEN
    nothing = {"schema": None, "ssl": None, "metadata": None, "updated_at": LATER}
    assert typed(the_document(raw)) == typed(before | nothing)


async def test_a_patch_that_changes_nothing_of_a_record_that_moved(
    records: MongoRecords, raw: Raw
) -> None:
    before = insert(raw)
    connection = await the_connection(records)
    too_old = replace(connection, host="x", updated_at=LATER)
    assert (
        await records.connections.update(too_old, before=replace(connection, updated_at=CREATED))
        is UpdateAnswer.CHANGED
    )
    assert typed(the_document(raw)) == typed(before)
    raw["connection"].update_one({}, {"$set": {"deleted_at": ENDED}})
    assert await records.connections.update(too_old, before=connection) is UpdateAnswer.GONE
    assert typed(the_document(raw)) == typed(before | {"deleted_at": ENDED})


async def test_a_name_of_a_live_record_of_the_reference_is_taken(
    records: MongoRecords, raw: Raw
) -> None:
    insert(raw)
    own = a_connection(config_name="own_db")
    await records.connections.insert(own)
    renamed = replace(own, config_name="sales_db", updated_at=LATER)
    with pytest.raises(DuplicateConfigName):
        await records.connections.update(renamed, before=own)
    raw["connection"].update_one({"config_name": "sales_db"}, {"$set": {"deleted_at": ENDED}})
    answer = await records.connections.update(renamed, before=own)
    assert answer is UpdateAnswer.WRITTEN


@pytest.mark.parametrize("product", ["", None, ABSENT], ids=["empty", "null", "absent"])
@pytest.mark.parametrize("subtype", [0, 4])
async def test_a_record_without_a_product_is_assigned_once(
    records: MongoRecords, raw: Raw, product: object, subtype: int
) -> None:
    before = insert(raw, product_name=product, _id=Binary(CONNECTION_ID.bytes, subtype))
    assigned = await records.connections.assign(CONNECTION_ID, product_name="bi", at=LATER)
    assert assigned == await the_connection(records)
    after = before | {"product_name": "bi", "updated_at": LATER}
    assert typed(the_document(raw)) == typed(after)
    again = await records.connections.assign(CONNECTION_ID, product_name="bi", at=LATER)
    assert again is None
    assert typed(the_document(raw)) == typed(after)


@pytest.mark.parametrize("variant", OLD_VARIANTS)
async def test_a_deletion_sets_two_times_and_nothing_else(
    records: MongoRecords, raw: Raw, variant: dict[str, Any]
) -> None:
    before = insert(raw, **variant)
    assert await records.connections.delete(CONNECTION_ID, at=LATER)
    assert typed(the_document(raw)) == typed(before | {"deleted_at": LATER, "updated_at": LATER})
    assert not await records.connections.delete(CONNECTION_ID, at=LATER)
    assert await records.connections.get(CONNECTION_ID) is None


async def test_what_we_insert_we_patch_in_the_same_layout(records: MongoRecords, raw: Raw) -> None:
    connection = a_connection(config_name="sales_db", product_name="bi")
    await records.connections.insert(connection)
    inserted = the_document(raw)
    assert not {"schema", "ssl", "metadata"} & set(inserted)
    patched = replace(connection, updated_at=LATER)
    await records.connections.update(patched, before=connection)
    nothing = {"schema": None, "ssl": None, "metadata": None, "updated_at": LATER}
    assert typed(the_document(raw)) == typed(inserted | nothing)


async def test_pages_hold_ids_of_either_subtype_once(records: MongoRecords, raw: Raw) -> None:
    ids = [ConnectionId(UUID(int=number)) for number in range(1, 6)]
    for place, each in enumerate(ids):
        insert(raw, _id=Binary(each.bytes, 4 if place % 2 else 0), config_name=f"db{place}")
    seen = []
    for number in (1, 2, 3):
        page = await records.connections.list_page(ConnectionQuery(page=number, limit=2))
        seen += [connection.id for connection in page.items]
    assert sorted(seen) == ids
