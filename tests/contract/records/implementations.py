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

from fetcher.adapters.memory import open_memory_records
from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.ports import RecordStore

OpenRecords: TypeAlias = AbstractAsyncContextManager[RecordStore]
RecordStoreFactory: TypeAlias = Callable[[pytest.FixtureRequest, Path], OpenRecords]


@asynccontextmanager
async def _memory(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[RecordStore]:
    yield open_memory_records(lambda: datetime.now(UTC))


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> OpenRecords:
    return open_sqlite_records(folder / "fetcher.db")


record_stores: dict[str, RecordStoreFactory] = {"memory": _memory, "sqlite": _sqlite}
