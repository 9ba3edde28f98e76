"""A record store in a file of its own, and the file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fetcher.adapters.sqlite import SqliteRecordStore, open_sqlite_records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fetcher.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteRecordStore]:
    async with open_sqlite_records(path) as records:
        yield records
