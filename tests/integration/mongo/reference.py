"""Documents as the reference writes them (spec rest-api 12.2, 12.3), and exact comparison.

Doubles for all numbers of JSON, nulls for unused operators, ids of subtype 0.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from bson import Binary
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.domain.jobs import Job

JOB_ID = JobId(UUID("0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"))
CONNECTION_ID = ConnectionId(UUID("0195a0b1-0000-7e3f-8a4b-5c6d7e8f9a0b"))
CREATED = datetime(2026, 3, 14, 9, 26, 53, 500_000, tzinfo=UTC)
ENDED = datetime(2026, 3, 14, 9, 26, 54, 312_000, tzinfo=UTC)


def condition(**used: list[Any]) -> dict[str, Any]:
    names = [
        *("equals", "greaterthan", "greaterorequal", "lessthan", "lessorequal"),
        *("between", "in", "notin", "notequals", "like"),
    ]
    return dict.fromkeys(names) | used


def reference_job(**changes: Any) -> dict[str, Any]:
    return {
        "_id": Binary(JOB_ID.bytes, 0),
        "metadata": {"source": "acme-reports", "batch": 7.0, "share": 0.25, "tags": ["a", None]},
        "mapped_fields": {"sales_db": {"public.orders": ["id", "total"]}},
        "filters": {
            "sales_db": {
                "public.orders": {
                    "total": condition(greaterorequal=[10.5], notin=[1.0, 9007199254740992.0]),
                    "state": condition(**{"in": ["paid", "sent"]}, like=[]),
                }
            }
        },
        "status": "pending",
        "dedup_active": True,
        "request_hash": "79dcd116bf0a2a59b828e759968cc080184d850885d486078e1fbdceaba9e0bf",
        "created_at": CREATED,
        "completed_at": None,
    } | changes


def reference_connection(**changes: Any) -> dict[str, Any]:
    return {
        "_id": Binary(CONNECTION_ID.bytes, 0),
        "product_name": "acme-reports",
        "config_name": "sales_db",
        "type": "POSTGRESQL",
        "host": "pg1.acme.test",
        "port": 5432,
        "database_name": "sales",
        "schema": None,
        "username": "reader",
        "password_encrypted": "c2VhbGVk",
        "encryption_key_version": "1",
        "ssl": None,
        "metadata": None,
        "created_at": CREATED,
        "updated_at": ENDED,
        "deleted_at": None,
    } | changes


async def stored_job(records: MongoRecords, raw: Database[dict[str, Any]], **changes: Any) -> Job:
    raw["job"].insert_one(reference_job(**changes))
    job = await records.jobs.get(JOB_ID)
    assert job is not None
    return job


def typed(value: object) -> object:
    """The value with its BSON types: a plain comparison takes 7.0, int32 7 and int64 7 for one.

    pymongo reads int32 as ``int``, int64 as ``Int64``, subtype 0 as ``bytes``.
    """
    match value:
        case Mapping():
            return {name: typed(item) for name, item in value.items()}
        case list():
            return [typed(item) for item in value]
        case Binary(subtype=0):
            return "bytes", bytes(value)
        case Binary(subtype=subtype):
            return f"binary {subtype}", bytes(value)
        case _:
            return type(value).__name__, value
