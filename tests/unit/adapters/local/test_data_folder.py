import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fetcher.adapters.local.data_folder import own_data_folder
from fetcher.crypto.keys import decode_master_key
from fetcher.domain.errors import StartRefused


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_is_created_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "fetcher-data"
    with own_data_folder(path) as folder:
        assert mode_of(path) == 0o700
        assert folder.database == path / "fetcher.db"
        assert folder.objects == path / "objects"
        assert folder.events == path / "events.jsonl"
        assert folder.dead_letters == path / "dead-letters.jsonl"
        assert mode_of(folder.make_sources()) == 0o700


def test_a_second_owner_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with (
        own_data_folder(tmp_path),
        pytest.raises(StartRefused, match=f"is in use by process {os.getpid()}$"),
        own_data_folder(tmp_path),
    ):
        pytest.fail("two owners")


def test_another_process_is_refused_too(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from fetcher.adapters.local.data_folder import own_data_folder;"
        "own_data_folder(Path(sys.argv[1])).__enter__()"
    )
    with own_data_folder(tmp_path):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert f"in use by process {os.getpid()}" in ended.stderr


def test_the_lock_is_free_again_after_its_owner_left(tmp_path: Path) -> None:
    for _ in range(2):
        with own_data_folder(tmp_path):
            pass


def test_what_a_stranger_wrote_into_the_lock_is_not_repeated(tmp_path: Path) -> None:
    with own_data_folder(tmp_path):
        (tmp_path / "lock").write_bytes(b"\x1b[31mevil\x00" * 100)
        with (
            pytest.raises(StartRefused, match=r"in use by another process$"),
            own_data_folder(tmp_path),
        ):
            pytest.fail("two owners")


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StartRefused, match=r"FETCHER_DATA_DIR: .*Not a directory") as caught,
        own_data_folder(tmp_path / "file" / "data"),
    ):
        pytest.fail("it was opened")
    assert caught.value.__cause__ is None


def test_the_master_key_is_made_once_and_kept(tmp_path: Path) -> None:
    with own_data_folder(tmp_path) as folder:
        key, was_created = folder.master_key()
        assert was_created
        assert len(decode_master_key(key)) == 32
        assert mode_of(tmp_path / "master.key") == 0o600
    with own_data_folder(tmp_path) as folder:
        assert folder.master_key() == (key, False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "master.key"]


def test_a_key_left_half_written_by_a_crash_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "master.new").write_text("half")
    with own_data_folder(tmp_path) as folder:
        key, was_created = folder.master_key()
    assert was_created
    assert len(decode_master_key(key)) == 32


def test_a_key_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "master.key").mkdir()
    with own_data_folder(tmp_path) as folder, pytest.raises(StartRefused, match=r"master\.key"):
        folder.master_key()


def test_a_disk_without_room_refuses_the_start_and_leaves_the_folder_free(tmp_path: Path) -> None:
    """The name of its holder is the first that is written to it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(StartRefused, match=r"FETCHER_DATA_DIR: .*File too large"):
            own_data_folder(tmp_path).__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with own_data_folder(tmp_path) as folder:
        assert folder.path == tmp_path
