"""A job whose store refuses in the middle, on the real server: nothing of its upload stays."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import trio
from botocore.exceptions import ClientError
from mypy_boto3_s3 import S3Client

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore, open_s3
from fetcher.bridge import open_asyncio
from fetcher.commands.run_job import RunJob
from fetcher.domain.jobs import JobStatus
from fetcher.domain.result_keys import LATE_WRITE_SECONDS
from fetcher_engine.memory import MemorySource
from tests.servers.addresses import S3Access
from tests.servers.waiting import eventually
from tests.unit.commands.job_bench import Bench, a_connection

pytestmark = pytest.mark.integration

MANY_ROWS = [{"id": number, "note": "x" * 4000} for number in range(6000)]
"""24 MB, thus four parts once sealed."""
FEW_ROWS = MANY_ROWS[:10]


class Refusing:
    """The real client, but for calls that are answered as by a store whose rules were changed."""

    def __init__(self, client: Any, *, part: int = 0, complete: bool = False) -> None:
        self._client = client
        self._part = part
        self._complete = complete

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def upload_part(self, **call: Any) -> Any:
        if call["PartNumber"] == self._part:
            raise denied("UploadPart")
        return await self._client.upload_part(**call)

    async def complete_multipart_upload(self, **call: Any) -> Any:
        if self._complete:
            raise denied("CompleteMultipartUpload")
        return await self._client.complete_multipart_upload(**call)


class Silent(Refusing):
    """Takes a put and never answers; it is carried out when the test wants it."""

    taken: tuple[str, bytes] | None = None

    async def put_object(self, **call: Any) -> Any:
        self.taken = call["Key"], call["Body"].read()
        await asyncio.Event().wait()


def denied(operation: str) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": "AccessDenied", "Message": "no"},
            "ResponseMetadata": {"HTTPStatusCode": 403},  # type: ignore[typeddict-item]  # the rest is never read
        },
        operation,
    )


@pytest.fixture
def location(s3_access: S3Access, s3_bucket: Callable[[], str]) -> S3Location:
    return S3Location(
        bucket=s3_bucket(),
        endpoint=s3_access.endpoint,
        region=s3_access.region,
        access_key_id=s3_access.access_key,
        secret_key=s3_access.secret_key,
        path_style=True,
    )


@pytest.fixture
async def store(location: S3Location) -> AsyncIterator[S3ObjectStore]:
    async with open_asyncio(pytest.fail), open_s3(location) as opened:
        yield opened


async def a_bench(store: S3ObjectStore, rows: list[dict[str, object]]) -> Bench:
    bench = Bench(MemorySource.of_rows({"orders": rows}))
    await bench.records.connections.insert(a_connection())
    bench.run_job = RunJob(replace(bench.run_job._parts, objects=store))
    return bench


def left(s3_client: S3Client, bucket: str) -> tuple[int, int]:
    """How many uploads and objects there are."""
    uploads = s3_client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return len(uploads), s3_client.list_objects_v2(Bucket=bucket)["KeyCount"]


@pytest.mark.parametrize("refused", [{"part": 1}, {"part": 3}, {"part": 4}, {"complete": True}])
async def test_a_job_whose_store_refuses_a_part_or_the_end_fails_and_leaves_no_upload(
    store: S3ObjectStore, location: S3Location, s3_client: S3Client, refused: dict[str, Any]
) -> None:
    refusing = S3ObjectStore(Refusing(store._client, **refused), location)
    bench = await a_bench(refusing, MANY_ROWS)
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.FAILED
    assert outcome.failure is not None
    assert outcome.failure.code == "storage_unavailable"
    assert left(s3_client, location.bucket) == (0, 0)
    [(job_id, _)] = await bench.records.cleanup.find_due(limit=2)
    assert job_id == claim.job.id


async def test_the_same_rows_make_four_parts_where_nothing_is_refused(
    store: S3ObjectStore, location: S3Location, s3_client: S3Client
) -> None:
    bench = await a_bench(store, MANY_ROWS)
    outcome = await bench.outcome(await bench.claimed())
    assert outcome.result is not None
    stored = s3_client.head_object(Bucket=location.bucket, Key=outcome.result.path)
    assert 3 * 8 * 1024 * 1024 < stored["ContentLength"] < 4 * 8 * 1024 * 1024
    assert stored["ETag"].endswith('-4"')
    assert left(s3_client, location.bucket) == (0, 1)


async def test_a_put_that_is_carried_out_after_its_attempt_was_stopped_is_deleted_later(
    store: S3ObjectStore, location: S3Location, s3_client: S3Client
) -> None:
    silent = Silent(store._client)
    bench = await a_bench(S3ObjectStore(silent, location), FEW_ROWS)
    claim = await bench.claimed()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.run_job.run, claim.job, claim.lease)
        await eventually(lambda: silent.taken, deadline_seconds=20)
        nursery.cancel_scope.cancel()
    assert left(s3_client, location.bucket) == (0, 0)
    for seconds, visible in ((0, 1), (LATE_WRITE_SECONDS, 0)):
        bench.pass_time(seconds)
        [(job_id, keys)] = await bench.records.cleanup.find_due(limit=2)
        for key in keys:
            await store.delete(key)
        await bench.records.cleanup.clear(job_id, keys)
        if seconds == 0:
            assert silent.taken is not None
            key, body = silent.taken
            s3_client.put_object(Bucket=location.bucket, Key=key, Body=body)
        assert left(s3_client, location.bucket) == (0, visible)
    assert await bench.records.cleanup.find_due(limit=2) == []
