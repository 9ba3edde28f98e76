"""A record store, and its database as a plain client sees it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pymongo
import pytest
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, open_mongo_records
from fetcher.bridge import open_asyncio


@pytest.fixture(scope="module")
def plain_client(mongo_uri: str) -> Iterator[pymongo.MongoClient[dict[str, Any]]]:
    """Blocking, with pymongo's own types, times in UTC.

    Its threads take 0.5 s to end, so it lives for a module; all of them start before a test does.
    """
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, tz_aware=True, serverMonitoringMode="poll"
    ) as client:
        client.admin.command("ping")
        yield client


@pytest.fixture
def raw(
    plain_client: pymongo.MongoClient[dict[str, Any]], mongo_database_of_module: str
) -> Database[dict[str, Any]]:
    """What really lies in the database; no records at first."""
    database = plain_client[mongo_database_of_module]
    for name in database.list_collection_names():
        database[name].delete_many({})
    return database


@pytest.fixture
async def asyncio_room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


@pytest.fixture
async def records(
    asyncio_room: None, raw: Database[dict[str, Any]], mongo_uri: str
) -> AsyncIterator[MongoRecords]:
    async with open_mongo_records(mongo_uri, raw.name, allow_plaintext=True) as store:
        yield store
