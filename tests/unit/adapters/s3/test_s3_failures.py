"""What a store that fails does to an upload (spec worker-and-events 12.7, rows O7 and on)."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import trio
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, NoCredentialsError
from botocore.parsers import ResponseParserError

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from tests.unit.adapters.s3.fake_s3 import FakeS3Client, Fault, answered

MIB = 1024 * 1024
KEY = "external-data/job.json"

NO_ANSWER = ConnectTimeoutError(endpoint_url="http://user:canary-secret@store/")
UNREACHABLE = EndpointConnectionError(endpoint_url="http://user:canary-secret@store/")
BROKEN = answered("InternalError", 500)
SLOW_DOWN = answered("SlowDown", 503)
TORN = answered("IncompleteBody", 400)
CHANGED = answered("BadDigest", 400)
TOO_MANY = answered("", 429)
DENIED = answered("AccessDenied", 403)
NO_BUCKET = answered("NoSuchBucket", 404)
NO_XML = ResponseParserError("invalid XML received: canary-secret")
NO_TIME = ValueError("Invalid timestamp: canary-secret")


MANY = 10_000
"""More tries than a minute has room for."""
STEPS = [
    ("put_object", 10),
    ("create_multipart_upload", 9 * MIB),
    ("upload_part", 9 * MIB),
    ("complete_multipart_upload", 9 * MIB),
]


@pytest.fixture
def client() -> FakeS3Client:
    return FakeS3Client()


@pytest.fixture
async def store(client: FakeS3Client) -> AsyncIterator[S3ObjectStore]:
    async with open_asyncio(pytest.fail):
        yield S3ObjectStore(client, S3Location(bucket="results"))


async def put(store: S3ObjectStore, size: int) -> int:
    async with store.upload(KEY) as upload:
        await upload.write(b"x" * size)
        return await upload.complete()


async def fail_to_put(store: S3ObjectStore, size: int) -> str:
    with pytest.raises(PortUnavailable) as caught:
        await put(store, size)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "canary-secret" not in str(caught.value)
    return str(caught.value)


async def test_an_answer_without_what_it_must_have_is_none(
    store: S3ObjectStore, client: FakeS3Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(**_: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr(client, "head_object", nothing)
    with pytest.raises(PortUnavailable) as caught:
        await store.size(KEY)
    assert str(caught.value) == "s3 lookup failed: the answer cannot be read"
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "error",
    [NO_ANSWER, UNREACHABLE, BROKEN, SLOW_DOWN, TOO_MANY, TORN, CHANGED, NO_XML, NO_TIME],
)
@pytest.mark.parametrize(("operation", "size"), STEPS)
async def test_a_transient_error_is_tried_again(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    operation: str,
    size: int,
    error: Exception,
) -> None:
    client.faults[operation] = [Fault(error), Fault(error)]
    began = trio.current_time()
    assert await put(store, size) == size
    assert len(client.objects[KEY]) == size
    assert client.uploads == {}
    assert trio.current_time() - began < 1.5  # full jitter over 0.5 s, then 1 s


@pytest.mark.parametrize(("operation", "size"), STEPS)
async def test_a_store_that_is_away_for_less_than_a_minute_fails_no_upload(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    operation: str,
    size: int,
) -> None:
    client.faults[operation] = [Fault(UNREACHABLE)] * 13  # 0.5, 1, 2, 4 and nine times 5 s at most
    assert await put(store, size) == size
    assert client.calls.count(operation) >= 14
    assert (len(client.objects[KEY]), client.uploads) == (size, {})


@pytest.mark.parametrize("size", [10, 9 * MIB, 17 * MIB])
async def test_after_a_minute_the_upload_failed_and_nothing_is_left(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client, size: int
) -> None:
    operation = "put_object" if size < 8 * MIB else "upload_part"
    client.faults[operation] = [Fault(BROKEN)] * MANY
    began = trio.current_time()
    text = await fail_to_put(store, size)
    assert text == "s3 upload failed: the store answered 500 InternalError"
    assert 60 <= trio.current_time() - began < 70
    assert (client.objects, client.uploads) == ({}, {})


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DENIED, "s3 upload failed: access denied"),
        (NO_BUCKET, "s3 upload failed: bucket not found"),
        (NoCredentialsError(), "s3 upload failed: NoCredentialsError"),
    ],
)
async def test_a_lasting_error_is_not_tried_again(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    error: Exception,
    text: str,
) -> None:
    client.faults["put_object"] = [Fault(error)]
    assert await fail_to_put(store, 10) == text
    assert client.calls.count("put_object") == 1


async def test_a_part_is_sent_again_with_the_same_bytes(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client
) -> None:
    client.faults["upload_part"] = [Fault(NO_ANSWER, after=True), Fault(BROKEN)]
    data = bytes(range(256)) * (9 * MIB // 256)
    async with store.upload(KEY) as upload:
        for start in range(0, len(data), 100_000):
            await upload.write(data[start : start + 100_000])
        await upload.complete()
    first, second = data[: 8 * MIB], data[8 * MIB :]
    assert client.sent_parts == [(1, first), (1, first), (1, first), (2, second)]
    assert client.objects[KEY] == data


@pytest.mark.parametrize("size", [10, 9 * MIB])
async def test_an_answer_to_complete_that_was_lost_is_settled_by_presence_and_size(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client, size: int
) -> None:
    operation = "put_object" if size == 10 else "complete_multipart_upload"
    client.faults[operation] = [Fault(NO_ANSWER, after=True)] * 3
    assert await put(store, size) == size
    assert "head_object" in client.calls or client.calls.count(operation) > 1
    assert len(client.objects[KEY]) == size


async def test_a_complete_whose_upload_is_gone_is_settled_by_presence_and_size(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client
) -> None:
    client.faults["complete_multipart_upload"] = [Fault(NO_ANSWER, after=True)]
    client.faults["head_object"] = [Fault(BROKEN)] * 3
    assert await put(store, 9 * MIB) == 9 * MIB
    assert client.calls.count("complete_multipart_upload") == 2


async def test_another_object_of_other_size_is_no_proof(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client
) -> None:
    client.objects[KEY] = b"older"
    client.faults["put_object"] = [Fault(NO_ANSWER)] * MANY
    await fail_to_put(store, 10)


async def test_what_an_unanswered_complete_may_have_stored_is_removed(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client
) -> None:
    client.faults["complete_multipart_upload"] = [Fault(NO_ANSWER, after=True)] + [
        Fault(BROKEN)
    ] * MANY
    client.faults["head_object"] = [Fault(BROKEN)] * MANY
    await fail_to_put(store, 9 * MIB)
    assert (client.objects, client.uploads) == ({}, {})


async def test_an_upload_that_an_unanswered_create_left_behind_is_aborted(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client
) -> None:
    client.faults["create_multipart_upload"] = [Fault(NO_ANSWER, after=True)]
    assert await put(store, 9 * MIB) == 9 * MIB
    assert client.ids_made == 2
    assert client.uploads == {}
    assert len(client.objects[KEY]) == 9 * MIB


async def test_after_a_failed_part_every_further_call_fails(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore, client: FakeS3Client
) -> None:
    client.faults["upload_part"] = [Fault(DENIED)]
    async with store.upload(KEY) as upload:
        await upload.write(b"x" * 8 * MIB)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            with pytest.raises(PortUnavailable, match="access denied"):
                await upload.write(b"y")
        with pytest.raises(PortUnavailable, match="access denied"):
            await upload.complete()
    assert (client.objects, client.uploads) == ({}, {})


async def test_a_store_that_hangs_ends_the_try_at_its_deadline(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hang(**_call: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(client, "head_object", hang)
    began = trio.current_time()
    with pytest.raises(PortUnavailable, match="s3 lookup failed: timeout"):
        await store.size(KEY)
    assert 60 <= trio.current_time() - began < 62


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (answered("404", 404), "bucket not found"),
        (answered("NotFound", 404), "bucket not found"),
        (NO_BUCKET, "bucket not found"),
        (DENIED, "access denied"),
        (answered("403", 403), "access denied"),
        (answered("Forbidden", 400), "access denied"),
        (BROKEN, "the store answered 500 InternalError"),
        (UNREACHABLE, "connection failed"),
        (TimeoutError("canary-secret"), "timeout"),
    ],
)
async def test_the_probe_has_the_words_of_readiness(
    autojump_clock: trio.abc.Clock,
    store: S3ObjectStore,
    client: FakeS3Client,
    error: Exception,
    text: str,
) -> None:
    client.faults["head_bucket"] = [Fault(error)]
    result = await store.probe().check()
    assert (result.status, result.error, result.tls) == ("down", text, True)
    assert client.calls == ["head_bucket"]


async def test_the_probe_is_up_where_the_bucket_is(
    autojump_clock: trio.abc.Clock, store: S3ObjectStore
) -> None:
    probe = store.probe()
    result = await probe.check()
    assert (probe.name, probe.timeout_seconds) == ("s3", 2.0)
    assert (result.status, result.error, result.tls) == ("up", None, True)
