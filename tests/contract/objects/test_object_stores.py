"""The contract of ObjectStore (spec worker-and-events 12.7), over every implementation."""

import hashlib
import os
from collections.abc import Callable
from urllib.request import urlopen

import pytest
import trio

from fetcher.domain.errors import ObjectNotFound
from fetcher.ports import ObjectStore

MIB = 1024 * 1024
KEY = "external-data/0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b.json"


async def put(store: ObjectStore, key: str, data: bytes, *, chunk_bytes: int = MIB) -> int:
    async with store.upload(key) as upload:
        for start in range(0, len(data), chunk_bytes):
            await upload.write(data[start : start + chunk_bytes])
        return await upload.complete()


async def get(store: ObjectStore, key: str) -> bytes:
    async with store.read(key) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def test_what_is_read_is_what_was_written(store: ObjectStore) -> None:
    data = bytes(range(256)) * 40
    assert await put(store, KEY, data, chunk_bytes=777) == len(data)
    assert await get(store, KEY) == data
    assert await store.size(KEY) == len(data)


async def test_an_empty_object_is_stored_and_read_back_empty(store: ObjectStore) -> None:
    assert await put(store, KEY, b"") == 0
    assert await get(store, KEY) == b""
    assert await store.size(KEY) == 0


async def test_twenty_mebibytes_come_back_byte_for_byte(
    store: ObjectStore, unfinished: Callable[[], list[str]]
) -> None:
    data = os.urandom(20 * MIB + 17)
    assert await put(store, KEY, data, chunk_bytes=300_001) == len(data)
    digest = hashlib.sha256()
    async with store.read(KEY) as chunks:
        async for chunk in chunks:
            assert len(chunk) <= 8 * MIB
            digest.update(chunk)
    assert digest.digest() == hashlib.sha256(data).digest()
    assert await store.size(KEY) == len(data)
    assert unfinished() == []


@pytest.mark.parametrize("size", [8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 16 * MIB])
async def test_sizes_around_a_part_are_exact(store: ObjectStore, size: int) -> None:
    data = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
    assert await put(store, KEY, data, chunk_bytes=size) == size
    assert await store.size(KEY) == size
    assert await get(store, KEY) == data


async def test_the_bytes_are_copied_before_write_returns(store: ObjectStore) -> None:
    buffer = bytearray(b"first")
    async with store.upload(KEY) as upload:
        await upload.write(buffer)
        buffer[:] = b"later"
        await upload.write(memoryview(buffer))
        await upload.complete()
    assert await get(store, KEY) == b"firstlater"


async def test_an_object_is_visible_to_nobody_before_it_is_complete(store: ObjectStore) -> None:
    async with store.upload(KEY) as upload:
        await upload.write(b"x" * (9 * MIB))
        assert await store.size(KEY) is None
        with pytest.raises(ObjectNotFound):
            await get(store, KEY)
        await upload.complete()
    assert await store.size(KEY) == 9 * MIB


@pytest.mark.parametrize("size", [100, 9 * MIB, 17 * MIB])
async def test_leaving_without_complete_leaves_nothing(
    store: ObjectStore, unfinished: Callable[[], list[str]], size: int
) -> None:
    async with store.upload(KEY) as upload:
        await upload.write(b"x" * size)
    assert await store.size(KEY) is None
    assert unfinished() == []


async def test_an_exception_in_the_body_comes_out_as_it_is_and_leaves_nothing(
    store: ObjectStore, unfinished: Callable[[], list[str]]
) -> None:
    raised = KeyError("a source failed")
    with pytest.raises(KeyError) as caught:
        await upload_and_fail(store, raised)
    assert caught.value is raised
    assert await store.size(KEY) is None
    assert unfinished() == []


async def upload_and_fail(store: ObjectStore, error: Exception) -> None:
    async with store.upload(KEY) as upload:
        await upload.write(b"x" * (9 * MIB))
        raise error


async def test_cancelling_while_a_third_part_is_on_its_way_leaves_nothing(
    store: ObjectStore, unfinished: Callable[[], list[str]]
) -> None:
    with trio.CancelScope() as scope:
        async with store.upload(KEY) as upload:
            for _ in range(3):
                await upload.write(b"x" * (8 * MIB))
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert await store.size(KEY) is None
    assert unfinished() == []


async def test_uploads_of_different_keys_do_not_mix(store: ObjectStore) -> None:
    contents = {f"external-data/{number}.json": bytes([number]) * (9 * MIB) for number in range(3)}
    async with trio.open_nursery() as nursery:
        for key, data in contents.items():
            nursery.start_soon(put, store, key, data)
    for key, data in contents.items():
        assert await get(store, key) == data


async def test_a_second_upload_of_a_key_replaces_the_object(store: ObjectStore) -> None:
    await put(store, KEY, b"old, and longer")
    await put(store, KEY, b"new")
    assert await get(store, KEY) == b"new"


async def test_a_missing_key_is_not_found(store: ObjectStore) -> None:
    assert await store.size(KEY) is None
    with pytest.raises(ObjectNotFound, match="object not found"):
        await get(store, KEY)


async def test_delete_removes_the_object_and_is_no_error_where_there_is_none(
    store: ObjectStore,
) -> None:
    await put(store, KEY, b"x")
    await store.delete(KEY)
    assert await store.size(KEY) is None
    await store.delete(KEY)


async def test_delete_removes_the_unfinished_uploads_of_exactly_that_key(
    store: ObjectStore, unfinished: Callable[[], list[str]]
) -> None:
    other = KEY + ".2"
    async with store.upload(KEY) as lost, store.upload(other) as kept:
        for upload in (lost, kept):
            await upload.write(b"x" * (8 * MIB))
        await trio.testing.wait_all_tasks_blocked()
        assert len(unfinished()) == 2
        await store.delete(KEY)
        assert len(unfinished()) == 1
        await kept.complete()
    assert await store.size(KEY) is None
    assert await store.size(other) == 8 * MIB


async def test_a_completed_upload_takes_nothing_more(store: ObjectStore) -> None:
    async with store.upload(KEY) as upload:
        await upload.write(b"x")
        await upload.complete()
        with pytest.raises(RuntimeError):
            await upload.write(b"y")
        with pytest.raises(RuntimeError):
            await upload.complete()
    assert await get(store, KEY) == b"x"


async def test_leaving_a_read_in_the_middle_is_no_error(store: ObjectStore) -> None:
    data = os.urandom(5 * MIB)
    await put(store, KEY, data)
    async with store.read(KEY) as chunks:
        async for chunk in chunks:
            assert data.startswith(chunk)
            break
    assert await get(store, KEY) == data


async def test_many_small_writes_take_no_turn_of_the_scheduler(store: ObjectStore) -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        async with store.upload(KEY) as upload:
            nursery.start_soon(count_turns)
            for _ in range(10_000):
                await upload.write(b"0123456789")
            assert turns == 0
            assert await upload.complete() == 100_000
        nursery.cancel_scope.cancel()


async def test_a_temporary_address_serves_the_object_or_there_is_none(
    store: ObjectStore, store_kind: str
) -> None:
    key = "a folder/é.json"
    await put(store, key, b"sealed")
    address = await store.temporary_address(key, seconds=60)
    if store_kind == "folder":
        assert address is None
        return
    assert address is not None
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in address
    assert "X-Amz-Expires=60" in address

    def fetched() -> bytes:
        with urlopen(address, timeout=10) as answer:  # noqa: S310 - the test server's own address
            data: bytes = answer.read()
            return data

    assert await trio.to_thread.run_sync(fetched) == b"sealed"
