"""Every record store there is: the contract suite runs over each.

A factory gets the test's request (for fixtures of its server, asked for by name) and an empty
folder, and answers a store without any record that is open for the length of the test.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import pytest
from pymongo import AsyncMongoClient

from fetcher.adapters.memory import open_memory_records
from fetcher.adapters.mongo import open_mongo_records
from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.ports import RecordStore

OpenRecords: TypeAlias = AbstractAsyncContextManager[RecordStore]
RecordStoreFactory: TypeAlias = Callable[[pytest.FixtureRequest, Path], OpenRecords]


@asynccontextmanager
async def _memory(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[RecordStore]:
    yield open_memory_records(lambda: datetime.now(UTC))


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> OpenRecords:
    return open_sqlite_records(folder / "fetcher.db")


def _mongo(request: pytest.FixtureRequest, folder: Path) -> OpenRecords:
    uri = request.getfixturevalue("mongo_uri")
    database_name = request.getfixturevalue("mongo_database_of_module")

    async def empty() -> None:
        async with AsyncMongoClient[dict[str, object]](uri) as client:
            database = client[database_name]
            for name in await database.list_collection_names():
                await database[name].delete_many({})

    @asynccontextmanager
    async def opened() -> AsyncIterator[RecordStore]:
        async with (
            open_asyncio(pytest.fail),
            open_mongo_records(uri, database_name, allow_plaintext=True) as records,
        ):
            await run_asyncio(empty)
            yield records

    return opened()


record_stores: dict[str, RecordStoreFactory] = {
    "memory": _memory,
    "mongo": _mongo,
    "sqlite": _sqlite,
}
