"""The probe asks the server, whatever the driver expects of it."""

import pytest
from pymongo.server_description import ServerDescription

from fetcher.adapters.mongo import MongoRecords
from fetcher.ports import ProbeStatus

pytestmark = pytest.mark.integration


async def test_server_that_was_slow_a_moment_ago_is_asked(
    records: MongoRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a freeze each of the driver's few measurements is nearly as long as its own limit."""
    assert (await records.probe.check()).status is ProbeStatus.UP
    monkeypatch.setattr(ServerDescription, "min_round_trip_time", 4.9)
    result = await records.probe.check()
    assert (result.status, result.error) == (ProbeStatus.UP, None)
