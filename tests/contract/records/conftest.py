"""The suite's one fixture: an empty record store of each implementation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fetcher.ports import RecordStore
from tests.contract.records.implementations import OpenRecords, record_stores


@pytest.fixture(params=sorted(record_stores))
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> OpenRecords:
    return record_stores[request.param](request, tmp_path)


@pytest.fixture
async def store(opening: OpenRecords) -> AsyncIterator[RecordStore]:
    async with opening as records:
        yield records
