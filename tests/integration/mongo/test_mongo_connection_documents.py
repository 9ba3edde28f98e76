"""A connection's document, name by name and BSON type by BSON type (spec rest-api 12.2)."""

from decimal import Decimal
from typing import Any

import pytest
from bson import Decimal128, Int64
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.connections import ConnectionQuery, SourceType, TlsSettings
from tests.integration.mongo.builders import a_connection
from tests.integration.mongo.reference import typed

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration


def only_document(raw: Raw) -> dict[str, Any]:
    [document] = raw["connection"].find()
    return document


async def test_a_connection_without_its_optional_parts(records: MongoRecords, raw: Raw) -> None:
    connection = a_connection(config_name="sales_db", product_name="")
    await records.connections.insert(connection)
    document = only_document(raw)
    assert typed(document) == typed(
        {
            "_id": connection.id.bytes,
            "product_name": "",
            "config_name": "sales_db",
            "type": "POSTGRESQL",
            "host": "pg1.acme.test",
            "port": 5432,
            "database_name": "sales",
            "username": "reader",
            "password_encrypted": "c2VhbGVk",
            "encryption_key_version": "1",
            "created_at": connection.created_at,
            "updated_at": connection.updated_at,
            "deleted_at": None,
        }
    )
    assert type(document["_id"]) is bytes  # pymongo's form of subtype 0, of no other
    assert raw["connection"].count_documents({"port": {"$type": "int"}}) == 1
    assert raw["connection"].count_documents({"created_at": {"$type": "date"}}) == 1


async def test_a_connection_with_all_of_them(records: MongoRecords, raw: Raw) -> None:
    connection = a_connection(
        schema="public",
        tls=TlsSettings(mode="verify-full", ca="CA", key="KEY"),
        metadata={"team": "bi", "a.b": {"$c": [2**40, Decimal("0.10"), None, True]}},
    )
    await records.connections.insert(connection)
    document = only_document(raw)
    assert document["schema"] == "public"
    assert document["ssl"] == {"mode": "verify-full", "ca": "CA", "key": "KEY"}
    assert typed(document["metadata"]) == typed(
        {"team": "bi", "a.b": {"$c": [Int64(2**40), Decimal128("0.10"), None, True]}}
    )
    assert await records.connections.get(connection.id) == connection


@pytest.mark.parametrize("source_type", list(SourceType))
async def test_every_type_is_stored_under_its_name(
    records: MongoRecords, raw: Raw, source_type: SourceType
) -> None:
    connection = a_connection(type=source_type)
    await records.connections.insert(connection)
    assert only_document(raw)["type"] == source_type.value
    assert await records.connections.get(connection.id) == connection


async def test_a_repeated_insert_finds_its_own_record(records: MongoRecords, raw: Raw) -> None:
    """The driver sends an insert again whose answer was lost."""
    connection = a_connection()
    await records.connections.insert(connection)
    await records.connections.insert(connection)
    assert raw["connection"].count_documents({}) == 1


@pytest.mark.parametrize("name", ["a.c", ".*", "acme(", "acme$", "^acme"])
async def test_a_product_is_a_text_and_no_pattern(records: MongoRecords, name: str) -> None:
    await records.connections.insert(a_connection(product_name="abc"))
    page = await records.connections.list_page(ConnectionQuery(product_name=name))
    assert page.total == 0
    await records.connections.insert(a_connection(product_name=name.upper()))
    page = await records.connections.list_page(ConnectionQuery(product_name=name))
    assert page.total == 1
