import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fetcher.adapters.local.object_folder import FolderObjectStore, open_object_folder
from fetcher.domain.errors import OperationRefused, PortUnavailable, StartRefused


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FolderObjectStore]:
    async with open_object_folder(tmp_path / "objects") as opened:
        yield opened


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def put(store: FolderObjectStore, key: str, data: bytes) -> None:
    async with store.upload(key) as upload:
        await upload.write(data)
        await upload.complete()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "../escape",
        "a/../../escape",
        "a/..",
        "./a",
        "a//b",
        "a/",
        "a\\..\\b",
        "a\0b",
        ".uploads/x",
        "x" * 256,
        "\ud800",
    ],
)
async def test_a_key_that_could_leave_the_folder_is_refused(
    store: FolderObjectStore, tmp_path: Path, key: str
) -> None:
    with pytest.raises(ValueError, match=r"key|surrogates"):
        await put(store, key, b"x")
    with pytest.raises(ValueError, match=r"key|surrogates"):
        await store.size(key)
    with pytest.raises(ValueError, match=r"key|surrogates"):
        await store.delete(key)
    assert names_in(tmp_path) == ["objects"]
    assert names_in(tmp_path / "objects") == [".uploads"]


async def test_an_object_is_the_file_of_that_name_for_its_owner_only(
    store: FolderObjectStore, tmp_path: Path
) -> None:
    await put(store, "external-data/job..1.json", b"data")
    path = tmp_path / "objects" / "external-data" / "job..1.json"
    assert path.read_bytes() == b"data"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_what_a_crash_left_unfinished_is_removed_when_the_folder_opens(
    tmp_path: Path,
) -> None:
    root = tmp_path / "objects"
    async with open_object_folder(root) as store:
        await put(store, "kept.json", b"x")
    (root / ".uploads" / "digest.random").write_bytes(b"half")
    async with open_object_folder(root) as store:
        assert list((root / ".uploads").iterdir()) == []
        assert await store.size("kept.json") == 1


async def test_a_folder_is_no_object(store: FolderObjectStore) -> None:
    await put(store, "a/b", b"x")
    assert await store.size("a") is None
    assert await store.size("a/b/c") is None
    await store.delete("a/b/c")
    assert await store.size("a/b") == 1


async def test_a_full_disk_is_unavailable_and_leaves_nothing(
    store: FolderObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(descriptor: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    async def fail() -> None:
        async with store.upload("a") as upload:
            await upload.write(b"x")
            monkeypatch.setattr(os, "write", no_space)
            with pytest.raises(PortUnavailable) as caught:
                await upload.complete()
            assert caught.value.__context__ is None
            with pytest.raises(RuntimeError):
                await upload.complete()

    await fail()
    assert list((tmp_path / "objects" / ".uploads").iterdir()) == []
    assert await store.size("a") is None


async def test_the_probe_is_up_where_the_folder_is_writable(store: FolderObjectStore) -> None:
    result = await store.probe().check()
    assert (store.probe().name, result.status, result.error, result.tls) == (
        "object_store",
        "up",
        None,
        None,
    )


async def test_the_probe_is_down_where_little_room_is_left(
    store: FolderObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = os.statvfs("/")

    class LittleRoom:
        f_frsize = room.f_frsize
        f_bavail = 64 * 1024 * 1024 // room.f_frsize - 1

    monkeypatch.setattr(os, "statvfs", lambda _path: LittleRoom)
    result = await store.probe().check()
    assert (result.status, result.error) == ("down", "less than 64 MiB free")


async def test_the_probe_is_down_where_nothing_can_be_written(
    store: FolderObjectStore, tmp_path: Path
) -> None:
    (tmp_path / "objects" / ".uploads").rmdir()
    result = await store.probe().check()
    assert (result.status, result.error) == ("down", "object folder is not writable")


async def test_a_root_that_is_a_file_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartRefused, match="file/ cannot be made or written"):
        async with open_object_folder(tmp_path / "file"):
            pytest.fail("it was opened")


async def test_object_that_cannot_be_removed_is_told_from_a_folder_that_is_away(
    store: FolderObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "objects" / "external-data" / "1.json").mkdir(parents=True)
    with pytest.raises(OperationRefused, match="the object folder refused the deletion"):
        await store.delete("external-data/1.json")

    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "unlink", broken)
    with pytest.raises(PortUnavailable, match="the object folder failed") as caught:
        await store.delete("external-data/2.json")
    assert not isinstance(caught.value, OperationRefused)
