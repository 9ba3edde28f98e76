"""The archive of a diagnosis: its owner's alone, whole or not there, and never over another."""

import os
import stat
import tarfile
from pathlib import Path

import pytest

from fetcher.adapters.local.archive import write_archive

FILES = {"a/summary.json": b"{}\n", "a/empty.json": b""}


def test_it_holds_the_files_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    mask = os.umask(0)
    try:
        write_archive(path, FILES)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path, "r:gz") as written:
        entries = written.getmembers()
        found = {entry.name: written.extractfile(entry).read() for entry in entries}  # type: ignore[union-attr] # all are files
    assert found == FILES
    assert {entry.mode for entry in entries} == {0o600}
    assert {(entry.uid, entry.uname) for entry in entries} == {(0, "")}, "nobody's name is told"


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_there_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "a.tar.gz", tmp_path / "other"
    if kind == "file":
        path.write_bytes(b"kept")
    elif kind == "link":
        path.symlink_to(other)
    else:
        path.mkdir()
    with pytest.raises(FileExistsError):
        write_archive(path, FILES)
    assert not other.exists()
    assert kind != "file" or path.read_bytes() == b"kept"
    assert os.path.lexists(path)


def test_one_that_cannot_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_archive(tmp_path / "a.tar.gz", FILES)
    assert list(tmp_path.iterdir()) == []
