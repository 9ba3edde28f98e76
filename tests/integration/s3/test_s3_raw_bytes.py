"""What really arrives at a store that keeps the raw body of a request: the object, and no more."""

from collections.abc import AsyncIterator

import pytest

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.bridge import open_asyncio
from tests.integration.s3.recording_store import recorder

PART_BYTES = 8 * 1024 * 1024


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(lambda _: None):
        yield


@pytest.mark.parametrize("size", [0, 1, 100_000, PART_BYTES - 1, 2 * PART_BYTES + 5])
async def test_the_raw_bodies_are_the_object_byte_for_byte(room: None, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    with recorder() as server:
        location = S3Location(
            bucket="b",
            endpoint=f"http://127.0.0.1:{server.server_address[1]}",
            access_key_id="AK",
            secret_key="SK",
            path_style=True,
        )
        async with open_s3(location) as store, store.upload("external-data/k.json") as upload:
            await upload.write(data)
            assert await upload.complete() == size
    assert b"".join(body for _, body, _ in server.puts) == data
    for path, body, headers in server.puts:
        assert path.startswith("/b/external-data/k.json")
        assert headers["content-length"] == str(len(body))
        assert "content-encoding" not in headers
        assert "x-amz-trailer" not in headers
        assert "transfer-encoding" not in headers
        assert "expect" not in headers
        assert [name for name in headers if "checksum" in name] == []
    if size > PART_BYTES:
        assert [len(body) for _, body, _ in server.puts] == [PART_BYTES, PART_BYTES, 5]
