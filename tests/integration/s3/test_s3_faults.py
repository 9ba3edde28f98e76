"""Real sockets that are cut or hang between us and the store."""

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
import trio

from fetcher.adapters.s3 import upload as upload_module
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore, open_s3
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from tests.faults.proxy import FaultProxy, fault_proxy
from tests.servers.addresses import S3Access

pytestmark = pytest.mark.integration

MIB = 1024 * 1024
KEY = "external-data/job.json"


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
async def proxy(location: S3Location) -> AsyncIterator[FaultProxy]:
    parts = urlsplit(location.endpoint)
    async with fault_proxy(parts.hostname or "", parts.port or 80) as opened:
        yield opened


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


@pytest.fixture
async def direct(room: None, location: S3Location) -> AsyncIterator[S3ObjectStore]:
    async with open_s3(location) as store:
        yield store


@pytest.fixture
async def fragile(
    room: None, location: S3Location, proxy: FaultProxy
) -> AsyncIterator[S3ObjectStore]:
    """The same bucket, over connections that the test can cut."""
    endpoint = f"http://127.0.0.1:{proxy.port}"
    async with open_s3(replace(location, endpoint=endpoint)) as store:
        yield store


async def read_all(store: S3ObjectStore) -> bytes:
    async with store.read(KEY) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def test_a_part_whose_connection_is_cut_is_sent_again(
    fragile: S3ObjectStore, direct: S3ObjectStore, proxy: FaultProxy
) -> None:
    data = os.urandom(18 * MIB)
    async with fragile.upload(KEY) as upload:
        await upload.write(data[: 9 * MIB])
        proxy.cut()
        await upload.write(data[9 * MIB :])
        assert await upload.complete() == len(data)
    assert await read_all(direct) == data


async def test_cancelling_while_a_store_hangs_ends_soon(
    fragile: S3ObjectStore, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_module, "ABORT_SECONDS", 0.3)
    began = trio.current_time()
    with trio.move_on_after(0.5) as scope:
        async with fragile.upload(KEY) as upload:
            await upload.write(b"x" * (8 * MIB))
            proxy.stall()
            await upload.write(b"y" * (8 * MIB))
            await upload.complete()
    assert scope.cancelled_caught
    assert trio.current_time() - began < 3


async def test_a_download_that_is_cut_is_never_taken_for_the_whole(
    fragile: S3ObjectStore, direct: S3ObjectStore, proxy: FaultProxy
) -> None:
    async with direct.upload(KEY) as upload:
        await upload.write(os.urandom(20 * MIB))
        await upload.complete()
    received = 0

    async def read_and_cut() -> None:
        nonlocal received
        async with fragile.read(KEY) as chunks:
            async for chunk in chunks:
                received += len(chunk)
                proxy.cut()

    with pytest.raises(PortUnavailable, match="s3 download failed"):
        await read_and_cut()
    assert 0 < received < 20 * MIB


async def test_the_probe_of_a_store_that_hangs_ends_with_timeout_in_two_seconds(
    fragile: S3ObjectStore, proxy: FaultProxy
) -> None:
    assert (await fragile.probe().check()).status == "up"
    proxy.stall()
    began = trio.current_time()
    result = await fragile.probe().check()
    assert trio.current_time() - began == pytest.approx(2, abs=0.5)
    assert (result.status, result.error, result.tls) == ("down", "timeout", False)


async def test_the_probe_names_a_missing_bucket(room: None, location: S3Location) -> None:
    async with open_s3(replace(location, bucket="fetcher-t-missing")) as store:
        result = await store.probe().check()
    assert (result.status, result.error) == ("down", "bucket not found")


async def test_an_upload_to_a_missing_bucket_says_so(room: None, location: S3Location) -> None:
    async with (
        open_s3(replace(location, bucket="fetcher-t-missing")) as store,
        store.upload(KEY) as upload,
    ):
        await upload.write(b"x")
        with pytest.raises(PortUnavailable, match="s3 upload failed: bucket not found"):
            await upload.complete()
