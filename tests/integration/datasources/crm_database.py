"""The product's database as plugin_crm reads it: two organisations, and what is broken."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from bson import Int64, ObjectId
from pymongo.database import Database

from fetcher.crypto.sealed_fields import SealedFieldKeys
from fetcher.datasources.engines import RequestEngines
from fetcher.domain.connections import Connection, Origin, SourceType
from fetcher_engine import EngineError
from tests.integration.datasources.harness import Filters, a_connection, document, engines
from tests.unit.datasources.plugin_crm.sealing import (
    ANA,
    ENCRYPT_SECRET,
    HASH_SECRET,
    hashed,
    sealed,
)

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


def fill(source: Source) -> None:
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
