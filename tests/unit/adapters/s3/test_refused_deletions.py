"""One object that must stay is told from a bucket that is away: others may be deleted."""

from collections.abc import AsyncIterator

import pytest
import trio

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import OperationRefused, PortUnavailable
from tests.unit.adapters.s3.fake_s3 import FakeS3Client, Fault, answered

KEY = "external-data/held.json"


@pytest.fixture
def client() -> FakeS3Client:
    return FakeS3Client()


@pytest.fixture
async def store(client: FakeS3Client) -> AsyncIterator[S3ObjectStore]:
    async with open_asyncio(pytest.fail):
        yield S3ObjectStore(client, S3Location(bucket="results"))


@pytest.mark.parametrize("call", ["delete_object", "list_multipart_uploads"])
@pytest.mark.parametrize(
    ("code", "status"),
    [("AccessDenied", 403), ("InvalidRequest", 400), ("ObjectUnderActiveHold", 403), ("", 409)],
)
async def test_deletion_that_is_refused_for_the_object_is_told_as_refused(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    call: str,
    code: str,
    status: int,
) -> None:
    client.faults[call] = [Fault(answered(code, status))]
    with pytest.raises(OperationRefused, match="s3 delete refused: ") as caught:
        await store.delete(KEY)
    assert "canary-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "status"),
    [("NoSuchBucket", 404), ("InvalidAccessKeyId", 403), ("ExpiredToken", 400), ("SlowDown", 503)],
)
async def test_deletion_that_no_object_would_get_is_told_as_unavailable(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    code: str,
    status: int,
) -> None:
    client.faults["delete_object"] = [Fault(answered(code, status))] * 9
    with pytest.raises(PortUnavailable, match="s3 delete failed: ") as caught:
        await store.delete(KEY)
    assert not isinstance(caught.value, OperationRefused)
