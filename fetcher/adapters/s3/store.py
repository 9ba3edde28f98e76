"""Objects in an S3 bucket (spec worker-and-events 6)."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, Self, TypeVar

import aioboto3
import trio
from botocore.config import Config
from botocore.handlers import add_expect_header

from fetcher.adapters.s3.failures import Deadline, StoreFailure, call_store
from fetcher.adapters.s3.lifecycle import BucketLifecycle
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.multipart import S3Object
from fetcher.adapters.s3.upload import UploadContext
from fetcher.bridge import asyncio_context, run_asyncio
from fetcher.domain.errors import (
    ObjectNotFound,
    OperationRefused,
    PortUnavailable,
    StartRefused,
)
from fetcher.ports import Probe, ProbeResult, ProbeStatus, Upload

T = TypeVar("T")

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 60
POOL_CONNECTIONS: Final = 192
"""More than all tenants' downloads together may hold (128): nobody's upload waits for them."""
READ_BYTES: Final = 1024 * 1024
PROBE_SECONDS: Final = 2.0

OPEN: Final = Deadline(READ_SECONDS)
CHUNK: Final = Deadline(READ_SECONDS, tries=1)
SIGN: Final = Deadline(5.0, tries=1)
"""Ambient credentials may have to be fetched anew."""
HEAD_BUCKET: Final = Deadline(PROBE_SECONDS - 0.1, tries=1)
CLOSE_SECONDS: Final = 5.0
REFUSED_TO_US: Final = frozenset(
    {
        "AccountProblem",
        "AllAccessDisabled",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidBucketName",
        "InvalidToken",
        "NoSuchBucket",
        "NotSignedUp",
        "PermanentRedirect",
        "SignatureDoesNotMatch",
    }
)
"""What no object would be deleted by. All other refusals are taken for the object's own, since each
store has its own words for one under a hold; where our user may delete nothing each is told of."""


class S3ObjectStore:
    """ObjectStore over one asyncio client; open it with :func:`open_s3`."""

    def __init__(self, client: Any, location: S3Location) -> None:
        self._client = client
        self._location = location

    def upload(self, key: str) -> AbstractAsyncContextManager[Upload]:
        return UploadContext(self._object(key))

    @asynccontextmanager
    async def read(self, key: str) -> AsyncGenerator[AsyncIterator[bytes], None]:
        async def get() -> Any:
            answer = await self._client.get_object(Bucket=self._location.bucket, Key=key)
            return answer["Body"]

        async def close() -> None:
            body.close()

        body = await _in_port_terms("download", key, call_store(OPEN, get))
        try:
            yield _Chunks(body, key)
        finally:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await run_asyncio(close)

    async def size(self, key: str) -> int | None:
        return await _in_port_terms("lookup", key, self._object(key).size())

    async def delete(self, key: str) -> None:
        target = self._object(key)
        for step in (target.delete, target.abort_unfinished_uploads):
            await _in_port_terms("delete", key, step(), tells_refusals=True)

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:
        """Signed here, without a call, by whoever the credentials say we are."""

        async def sign() -> str:
            address: str = await self._client.generate_presigned_url(
                "get_object",
                Params={"Bucket": self._location.bucket, "Key": key},
                ExpiresIn=seconds,
            )
            return address

        return await _in_port_terms("signing", key, call_store(SIGN, sign))

    def lifecycle(self) -> BucketLifecycle:
        return BucketLifecycle(self._client, self._location.bucket)

    def probe(self) -> Probe:
        """The ``s3`` entry of readiness: HeadBucket (spec configuration 6.6)."""

        async def head_bucket() -> None:
            await self._client.head_bucket(Bucket=self._location.bucket)

        async def check() -> ProbeResult:
            started_at = trio.current_time()
            error: str | None = None
            try:
                await call_store(HEAD_BUCKET, head_bucket)
            except StoreFailure as failure:
                error = failure.reason
            return ProbeResult(
                status=ProbeStatus.UP if error is None else ProbeStatus.DOWN,
                latency_ms=int((trio.current_time() - started_at) * 1000),
                tls=self._location.tls,
                error=error,
            )

        return Probe(name="s3", timeout_seconds=PROBE_SECONDS, check=check)

    def _object(self, key: str) -> S3Object:
        return S3Object(client=self._client, bucket=self._location.bucket, key=key)


@asynccontextmanager
async def open_s3(location: S3Location) -> AsyncGenerator[S3ObjectStore, None]:
    """One client for the process; making it calls nobody.

    Raises StartRefused when the endpoint is no address.
    """

    def make_client() -> AbstractAsyncContextManager[Any]:
        client: AbstractAsyncContextManager[Any] = aioboto3.Session().client(
            "s3",
            endpoint_url=location.endpoint or None,
            region_name=location.region,
            aws_access_key_id=location.access_key_id or None,
            aws_secret_access_key=location.secret_key or None,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                max_pool_connections=POOL_CONNECTIONS,
                # Tries are ours: they wait on trio's clock and know what an answer that is lost
                # means for an upload.
                retries={"total_max_attempts": 1, "mode": "standard"},
                # Other stores refuse the trailing checksums that are the default for AWS.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                # Presigned addresses would otherwise be of version 2 in some regions.
                signature_version="s3v4",
                s3={"addressing_style": "path" if location.path_style else "virtual"},
            ),
        )
        return client

    async with AsyncExitStack() as closing:
        try:
            client = await closing.enter_async_context(asyncio_context(make_client))
        except ValueError:
            client = None
        if client is None:
            raise StartRefused(["OBJECT_STORAGE_ENDPOINT: not an address that can be used"])
        # aiohttp would wait for a "100 Continue" until the deadline where a store never sends one.
        client.meta.events.unregister("before-call.s3", add_expect_header)
        yield S3ObjectStore(client, location)


class _Chunks:
    def __init__(self, body: Any, key: str) -> None:
        self._body = body
        self._key = key

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        async def read() -> bytes:
            chunk: bytes = await self._body.read(READ_BYTES)
            return chunk

        chunk = await _in_port_terms("download", self._key, call_store(CHUNK, read))
        if not chunk:
            raise StopAsyncIteration
        return chunk


async def _in_port_terms(
    what: str, key: str, call: Awaitable[T], *, tells_refusals: bool = False
) -> T:
    try:
        return await call
    except StoreFailure as error:
        failure = error
    if failure.code == "NoSuchKey":
        raise ObjectNotFound(f"object not found: {key}")
    is_refused = 400 <= failure.status < 500 and not failure.is_transient
    if tells_refusals and is_refused and failure.code not in REFUSED_TO_US:
        raise OperationRefused(f"s3 {what} refused: {failure.reason}")
    raise PortUnavailable(f"s3 {what} failed: {failure.reason}")
