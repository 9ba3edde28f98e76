"""A disk that hangs holds neither a job nor its cancellation."""

import os
import tempfile
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import structlog.testing
import trio
import trio.testing

from fetcher.adapters.local.spool import ANSWER_SECONDS, THREADS, FolderSpool
from fetcher.domain.errors import PortUnavailable
from fetcher_engine import TenantContext

from .hung_disk import HungDisk, names_in, open_in, until_closed

TENANT = TenantContext.new("acme")
MIB = 1024 * 1024


@pytest.fixture
def spool(tmp_path: Path) -> FolderSpool:
    return FolderSpool(tmp_path)


async def test_a_cancelled_append_does_not_wait_for_the_disk_nor_lose_its_descriptor_to_it(
    spool: FolderSpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(b"before")
    disk = HungDisk()
    monkeypatch.setattr(os, "pwrite", disk.hangs(os.pwrite))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.append, b"cancelled")
        await disk.until_asked()
        nursery.cancel_scope.cancel()
    with pytest.raises(RuntimeError):
        await file.append(b"another")
    assert await file.read(100) == b"before"
    with pytest.raises(RuntimeError, match="nothing is left"):
        await file.read(1)
    await file.aclose()
    assert len(open_in(tmp_path)) == 1
    disk.answers.set()
    await until_closed(tmp_path)


async def test_a_cancelled_read_does_not_wait_for_the_disk_nor_lose_its_descriptor_to_it(
    spool: FolderSpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(b"data")
    disk = HungDisk()
    monkeypatch.setattr(os, "pread", disk.hangs(os.pread))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.read, 4)
        await disk.until_asked()
        nursery.cancel_scope.cancel()
    await file.aclose()
    await file.aclose()
    assert len(open_in(tmp_path)) == 1
    disk.answers.set()
    await until_closed(tmp_path)


async def test_a_file_whose_opening_was_cancelled_is_closed_once_it_is_there(
    spool: FolderSpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HungDisk()
    has_begun = threading.Event()
    real = tempfile.TemporaryFile

    def slow(**arguments: object) -> object:
        disk.was_asked.set()
        assert disk.answers.wait(10)
        file = real(buffering=0, dir=tmp_path)
        has_begun.set()
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(spool.open, TENANT, MIB)
        await disk.until_asked()
        nursery.cancel_scope.cancel()
    disk.answers.set()
    assert await trio.to_thread.run_sync(has_begun.wait, 10)
    await until_closed(tmp_path)


async def test_closing_finds_a_thread_while_all_of_the_spools_own_hang(
    spool: FolderSpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [await spool.open(TENANT, MIB) for _ in range(5)]
    disk = HungDisk()
    monkeypatch.setattr(os, "pwrite", disk.hangs(os.pwrite))
    async with trio.open_nursery() as nursery:
        for file in files:  # the fifth never gets a thread
            nursery.start_soon(file.append, b"x")
        await disk.until_asked()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    with trio.fail_after(3):
        for file in files:
            await file.aclose()
    assert len(open_in(tmp_path)) <= 4
    disk.answers.set()
    await until_closed(tmp_path)


async def until_given_up(
    clock: trio.testing.MockClock, work: Callable[[], Awaitable[object]]
) -> None:
    """The disk was asked, or there is no thread to ask it; now the time is up, and no earlier."""
    with structlog.testing.capture_logs() as records:
        async with trio.open_nursery() as nursery:

            async def fails() -> None:
                with pytest.raises(
                    PortUnavailable, match=r"^the spool failed: timed out$"
                ) as caught:
                    await work()
                assert (caught.value.__cause__, caught.value.__context__) == (None, None)

            nursery.start_soon(fails)
            await trio.testing.wait_all_tasks_blocked()
            clock.jump(ANSWER_SECONDS - 0.1)
            await trio.testing.wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 1
            clock.jump(0.1)
    assert records == [{"event": "spool_failed", "log_level": "warning", "code": "timed_out"}]


async def test_an_append_to_a_disk_that_hangs_is_given_up_and_what_was_there_is_read(
    spool: FolderSpool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mock_clock: trio.testing.MockClock,
) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(b"before")
    disk = HungDisk()
    monkeypatch.setattr(os, "pwrite", disk.hangs(os.pwrite))
    await until_given_up(mock_clock, partial(file.append, b"lost"))
    with pytest.raises(RuntimeError, match="has failed"):
        await file.append(b"more")
    assert await file.read(100) == b"before"
    await file.aclose()
    disk.answers.set()
    await until_closed(tmp_path)


async def test_a_read_and_an_opening_on_a_disk_that_hangs_are_given_up(
    spool: FolderSpool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mock_clock: trio.testing.MockClock,
) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(b"data")
    disk = HungDisk()
    monkeypatch.setattr(os, "pread", disk.hangs(os.pread))
    monkeypatch.setattr(os, "open", disk.hangs(os.open))
    await until_given_up(mock_clock, partial(file.read, 4))
    await until_given_up(mock_clock, partial(spool.open, TENANT, MIB))
    await until_given_up(mock_clock, spool.check)
    await file.aclose()
    disk.answers.set()
    await until_closed(tmp_path)
    assert names_in(tmp_path) == []


async def test_who_finds_all_threads_hanging_is_given_up_too(
    spool: FolderSpool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mock_clock: trio.testing.MockClock,
) -> None:
    files = [await spool.open(TENANT, MIB) for _ in range(THREADS + 1)]
    disk = HungDisk()
    with monkeypatch.context() as hanging:
        hanging.setattr(os, "pwrite", disk.hangs(os.pwrite))
        for file in files:
            await until_given_up(mock_clock, partial(file.append, b"x"))
    await until_given_up(mock_clock, partial(spool.open, TENANT, MIB))
    for file in files:
        await file.aclose()
    disk.answers.set()
    await until_closed(tmp_path)
    file = await spool.open(TENANT, MIB)  # the threads are free again
    await file.append(b"x")
    assert await file.read(1) == b"x"
    await file.aclose()
