"""A record store, and its database as a plain client sees it."""

import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pymongo
import pytest
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, open_mongo_records, server
from fetcher.bridge import open_asyncio
from tests.integration.mongo.lossy_proxy import LossyProxy, lossy_proxy


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


@pytest.fixture
def sockets_of_cancelled_connects_are_collected() -> Iterator[None]:
    """pymongo 4.20 leaves such a socket to the garbage collector: not in somebody else's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "OPERATION_SECONDS", 1.0)
    monkeypatch.setattr(server, "SETTLE_SECONDS", 1.0)


@pytest.fixture
async def proxied(
    short_deadlines: None, raw: Database[dict[str, Any]], mongo_uri: str
) -> AsyncIterator[tuple[LossyProxy, MongoRecords]]:
    async with (
        lossy_proxy(mongo_uri) as (proxy, address),
        open_asyncio(pytest.fail),
        open_mongo_records(address, raw.name, allow_plaintext=True) as records,
    ):
        await records.jobs.latest_ended()
        yield proxy, records
