"""What every Spool keeps, whatever it stores its bytes in."""

import random

import hypothesis
import hypothesis.strategies as st
import pytest
import trio

from fetcher_engine import Spool, SpoolFile, TenantContext

TENANT = TenantContext.new("acme")
KIB = 1024
MIB = 1024 * KIB


async def read_all(file: SpoolFile, size: int, max_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = await file.read(min(max_bytes, size - len(data)))
        assert 0 < len(piece) <= max_bytes
        data += piece
    return bytes(data)


@pytest.mark.parametrize("max_bytes", [1, 3, 4, 1000])
async def test_bytes_come_out_in_the_order_in_which_they_went_in(
    spool: Spool, max_bytes: int
) -> None:
    file = await spool.open(TENANT, 100)
    for piece in (b"one", b"", b"two", b"three"):
        await file.append(piece)
    assert await read_all(file, 11, max_bytes) == b"onetwothree"
    await file.append(b"four")
    assert await read_all(file, 4, max_bytes) == b"four"
    await file.aclose()


@pytest.mark.parametrize("size", [64 * KIB, 256 * KIB, 256 * KIB + 1, 3 * MIB])
async def test_a_piece_of_any_size_comes_out_whole(spool: Spool, size: int) -> None:
    piece = random.Random(size).randbytes(size)  # noqa: S311 - any bytes
    file = await spool.open(TENANT, size)
    await file.append(piece)
    assert await read_all(file, size, 256 * KIB) == piece
    await file.aclose()


async def test_files_know_nothing_of_each_other(spool: Spool) -> None:
    first, second = await spool.open(TENANT, 10), await spool.open(TENANT, 10)
    await first.append(b"first")
    await second.append(b"second")
    await first.aclose()
    assert await second.read(10) == b"second"
    await second.aclose()


async def test_closing_may_be_repeated_before_and_after_anything_was_read(spool: Spool) -> None:
    for read_bytes in (0, 2, 4):
        file = await spool.open(TENANT, 10)
        await file.append(b"data")
        assert await read_all(file, read_bytes, 2) == b"data"[:read_bytes]
        await file.aclose()
        await file.aclose()


sizes = st.integers(min_value=0, max_value=600 * KIB)


@hypothesis.given(
    pieces=st.lists(sizes, max_size=12),
    max_bytes=st.integers(min_value=2 * KIB, max_value=700 * KIB),
    seed=st.integers(),
)
@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]  # it keeps nothing
)
async def test_one_task_may_read_while_another_appends(
    spool: Spool, pieces: list[int], max_bytes: int, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - any bytes
    data = [rng.randbytes(size) for size in pieces]
    file = await spool.open(TENANT, sum(pieces))
    received = bytearray()
    told, counts = trio.open_memory_channel[int](len(pieces))

    async def append() -> None:
        async with told:
            for piece in data:
                await file.append(piece)
                await told.send(len(piece))

    async def read() -> None:
        async for count in counts:
            received.extend(await read_all(file, count, max_bytes))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(append)
        nursery.start_soon(read)
    assert bytes(received) == b"".join(data)
    await file.aclose()
