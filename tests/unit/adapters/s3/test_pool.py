"""Connections to the object store, which downloads hold for as long as their clients read."""

from fetcher.adapters.s3.store import POOL_CONNECTIONS
from fetcher.api.stream_places import MOST_RESULT_STREAMS


def test_downloads_of_all_tenants_leave_connections_to_jobs() -> None:
    assert POOL_CONNECTIONS >= MOST_RESULT_STREAMS + 64
