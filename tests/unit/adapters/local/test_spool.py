import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from fetcher.adapters.local.spool import CHUNK_BYTES, TAG_BYTES, FolderSpool
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher_engine import SpoolFile, TenantContext

from .hung_disk import names_in, open_in

TENANT = TenantContext.new("acme")
MIB = 1024 * 1024


@pytest.fixture
def spool(tmp_path: Path) -> FolderSpool:
    return FolderSpool(tmp_path)


def the_file_in(folder: Path) -> int:
    [descriptor] = open_in(folder)
    return descriptor


async def drained(file: SpoolFile, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += await file.read(size - len(data))
    return data


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The kernel's own refusal in the middle of a write, as of a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_what_lies_on_disk_is_sealed_and_has_no_name(
    spool: FolderSpool, tmp_path: Path
) -> None:
    data = b"confidential " * 50_000
    file = await spool.open(TENANT, MIB)
    await file.append(data)
    descriptor = the_file_in(tmp_path)
    found = os.fstat(descriptor)
    assert (found.st_nlink, stat.S_IMODE(found.st_mode)) == (0, 0o600)
    assert names_in(tmp_path) == []
    lying = os.pread(descriptor, 2 * MIB, 0)
    assert len(lying) == len(data) + 3 * TAG_BYTES
    assert b"confidential" not in lying
    assert await drained(file, len(data)) == data
    await file.aclose()


async def test_equal_bytes_are_never_sealed_to_equal_bytes(
    spool: FolderSpool, tmp_path: Path
) -> None:
    size = 4096 + TAG_BYTES
    files = [await spool.open(TENANT, MIB) for _ in range(2)]
    for file in files:
        await file.append(bytes(4096))
        await file.append(bytes(4096))
    # the tags apart: a nonce used twice shows in the cipher text
    sealed = {os.pread(fd, 4096, n * size) for fd in open_in(tmp_path) for n in range(2)}
    assert len(sealed) == 4
    for file in files:
        await file.aclose()


async def test_without_unnamed_files_the_name_is_gone_before_a_byte_is_written(
    spool: FolderSpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "_O_TMPFILE_WORKS", False)
    file = await spool.open(TENANT, MIB)
    found = os.fstat(the_file_in(tmp_path))
    assert (found.st_nlink, stat.S_IMODE(found.st_mode), found.st_size) == (0, 0o600, 0)
    assert names_in(tmp_path) == []
    await file.append(b"x")
    assert await file.read(1) == b"x"
    await file.aclose()


async def test_more_than_was_allowed_is_refused_and_never_read(spool: FolderSpool) -> None:
    file = await spool.open(TENANT, 10)
    await file.append(b"12345678")
    with pytest.raises(PortUnavailable, match=r"^the spool has taken all that it may$"):
        await file.append(b"abc")
    await file.append(b"90")
    assert await drained(file, 10) == b"1234567890"
    with pytest.raises(PortUnavailable):  # what was read makes no room
        await file.append(b"x")
    await file.aclose()


async def test_closing_frees_the_descriptor_and_may_be_repeated(
    spool: FolderSpool, tmp_path: Path
) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(b"data")
    assert await file.read(1) == b"d"
    assert len(open_in(tmp_path)) == 1
    await file.aclose()
    assert open_in(tmp_path) == {}
    await file.aclose()
    with pytest.raises(RuntimeError):
        await file.append(b"x")
    with pytest.raises(RuntimeError):
        await file.read(1)


async def test_closing_works_in_a_scope_that_is_cancelled(
    spool: FolderSpool, tmp_path: Path
) -> None:
    file = await spool.open(TENANT, MIB)
    with trio.CancelScope() as scope:
        scope.cancel()
        await file.aclose()
    assert open_in(tmp_path) == {}


@pytest.mark.parametrize("position", [0, CHUNK_BYTES // 2, CHUNK_BYTES + TAG_BYTES - 1])
async def test_a_changed_byte_is_noticed(spool: FolderSpool, tmp_path: Path, position: int) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(bytes(2 * CHUNK_BYTES))
    descriptor = the_file_in(tmp_path)
    [byte] = os.pread(descriptor, 1, position)
    os.pwrite(descriptor, bytes([byte ^ 1]), position)
    for _ in range(2):
        with pytest.raises(PortError, match="not what was written") as caught:
            await file.read(1)
        assert caught.value.__context__ is None
    await file.aclose()


async def test_chunks_that_changed_places_are_noticed(spool: FolderSpool, tmp_path: Path) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(bytes(2 * CHUNK_BYTES))
    descriptor, size = the_file_in(tmp_path), CHUNK_BYTES + TAG_BYTES
    first, second = os.pread(descriptor, size, 0), os.pread(descriptor, size, size)
    os.pwrite(descriptor, second + first, 0)
    with pytest.raises(PortError, match="not what was written"):
        await file.read(1)
    await file.aclose()


@pytest.mark.parametrize("left", [0, 10, CHUNK_BYTES + TAG_BYTES - 1])
async def test_a_file_cut_short_is_noticed(spool: FolderSpool, tmp_path: Path, left: int) -> None:
    file = await spool.open(TENANT, MIB)
    await file.append(bytes(CHUNK_BYTES))
    os.ftruncate(the_file_in(tmp_path), left)
    with pytest.raises(PortError, match="not what was written"):
        await file.read(1)
    await file.aclose()


async def test_what_was_appended_before_the_disk_was_full_is_still_read(
    spool: FolderSpool, tmp_path: Path
) -> None:
    before = os.urandom(200_000)
    file = await spool.open(TENANT, 10 * MIB)
    await file.append(before)
    with files_no_larger_than(300_000), pytest.raises(PortUnavailable) as caught:
        await file.append(bytes(200_000))
    assert str(caught.value) == "the spool failed: File too large"
    assert caught.value.__context__ is None
    assert os.fstat(the_file_in(tmp_path)).st_size == 300_000
    with pytest.raises(RuntimeError, match="has failed"):
        await file.append(b"more")
    assert await drained(file, len(before)) == before
    with pytest.raises(RuntimeError, match="nothing is left"):
        await file.read(1)
    await file.aclose()


async def test_a_disk_that_takes_and_gives_a_part_at_a_time_is_asked_again(
    spool: FolderSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:7001], at))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 7001), at))
    data = os.urandom(100_000)
    file = await spool.open(TENANT, MIB)
    await file.append(data)
    assert await drained(file, len(data)) == data
    await file.aclose()


async def test_a_disk_that_cannot_be_read_is_unavailable(
    spool: FolderSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error", "/a/path")

    file = await spool.open(TENANT, MIB)
    await file.append(b"data")
    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(PortUnavailable, match=r"^the spool failed: Input/output error$"):
        await file.read(4)
    await file.aclose()


async def test_a_folder_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path / "gone")
    with pytest.raises(
        PortUnavailable, match=r"^the spool failed: No such file or directory$"
    ) as caught:
        await spool.open(TENANT, MIB)
    assert caught.value.__context__ is None
    with pytest.raises(PortUnavailable):
        await spool.check()


async def test_a_check_leaves_nothing(spool: FolderSpool, tmp_path: Path) -> None:
    await spool.check()
    assert names_in(tmp_path) == []
    assert open_in(tmp_path) == {}
