"""A data folder's backup: whole or not at all, verified to the byte on the way back."""

import json
import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fetcher.adapters.sqlite import open_sqlite_records, schema, snapshot, still_file
from fetcher.bootstrap import backup as backup_module
from fetcher.bootstrap.backup import make_backup, restore_backup
from fetcher.cli import main
from fetcher.domain.backups import BackupFailed, BackupRejected
from fetcher.domain.job_store import JobQuery
from fetcher.domain.jobs import Job
from tests.unit.bootstrap.backups import PATHS, backup, flip, settings_of, tree


def modes(folder: Path) -> set[tuple[bool, int]]:
    return {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))
    }


async def test_what_the_records_name_comes_back_to_the_byte(
    tmp_path: Path, jobs: list[Job]
) -> None:
    made = make_backup(settings_of(tmp_path / "data"), tmp_path / "backup", with_master_key=True)
    assert made.missing == ()
    assert sorted(file.path for file in made.files) == [
        "dead-letters.jsonl",
        "events-20260101T000000000Z.jsonl",
        "events.jsonl",
        "fetcher.db",
        "master.key",
        *(f"objects/{path}" for path in PATHS),
    ]
    restored = restore_backup(settings_of(tmp_path / "new"), tmp_path / "backup")
    assert restored == made
    found, original = tree(tmp_path / "new"), tree(tmp_path / "data")
    for name in ("master.key", "dead-letters.jsonl", *(f"objects/{path}" for path in PATHS)):
        assert found[name] == original[name]
    assert found["events.jsonl"] == b'{"n":1}\n'
    assert set(found) == {"lock", *(file.path for file in made.files)}
    async with open_sqlite_records(tmp_path / "new" / "fetcher.db") as store:
        page = await store.jobs.list_page(JobQuery())
    assert {job.id for job in page.items} == {job.id for job in jobs}


@pytest.mark.usefixtures("jobs")
def test_only_the_owner_may_read_either(tmp_path: Path) -> None:
    source = backup(tmp_path)
    restore_backup(settings_of(tmp_path / "new"), source)
    for folder in (source, tmp_path / "new"):
        assert modes(folder) == {(True, 0o700), (False, 0o600)}


@pytest.mark.usefixtures("jobs")
def test_a_result_that_is_missing_is_told_and_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "data" / "objects" / PATHS[0]).unlink()
    made = make_backup(settings_of(tmp_path / "data"), tmp_path / "backup", with_master_key=True)
    assert made.missing == (PATHS[0],)
    assert restore_backup(settings_of(tmp_path / "new"), tmp_path / "backup") == made


@pytest.mark.usefixtures("jobs")
def test_a_target_that_is_taken_or_lies_inside_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "data")
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").touch()
    for target, told in ((taken, "there is something"), (tmp_path / "data" / "b", "lies inside")):
        with pytest.raises(BackupFailed, match=told):
            make_backup(settings, target, with_master_key=False)
    assert [path.name for path in taken.iterdir()] == ["mine"]
    taken.joinpath("mine").unlink()
    make_backup(settings, taken, with_master_key=False)


@pytest.mark.usefixtures("jobs")
def test_a_target_inside_is_refused_also_by_a_link_and_by_dots(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "into").symlink_to(tmp_path / "data" / "objects")
    (tmp_path / "other").mkdir()
    (tmp_path / "round").symlink_to(tmp_path / "round")
    before = tree(tmp_path / "data")
    for folder, target, told in (
        ("data", "link/b", "lies inside"),
        ("data", "into/b", "lies inside"),
        ("data", "other/../data/b", "lies inside"),
        ("link", "data/b", "lies inside"),
        ("other/../data", "data/b", "lies inside"),
        ("data", "round/b", "cannot be reached|symbolic links"),
    ):
        with pytest.raises(BackupFailed, match=told):
            make_backup(settings_of(tmp_path / folder), tmp_path / target, with_master_key=False)
    assert tree(tmp_path / "data") == before
    beside = tmp_path / "data" / ".." / "beside"
    make_backup(settings_of(tmp_path / "data"), beside, with_master_key=False)
    assert "manifest.json" in tree(tmp_path / "beside")


@pytest.mark.usefixtures("jobs")
def test_files_that_are_not_ours_are_no_part_of_a_backup(tmp_path: Path) -> None:
    for name in (
        "events-old.jsonl",
        "events-2026.jsonl",
        "dead-letters-old.jsonl",
        "dead-letters-20260101T000000000Z.jsonl",
    ):
        (tmp_path / "data" / name).write_text("{}\n")
    made = make_backup(settings_of(tmp_path / "data"), tmp_path / "backup", with_master_key=True)
    assert len(made.files) == 7
    assert restore_backup(settings_of(tmp_path / "new"), tmp_path / "backup") == made


@pytest.mark.usefixtures("jobs")
def test_events_that_were_set_aside_are_there_while_the_newest_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "data" / "events.jsonl").unlink()
    made = make_backup(settings_of(tmp_path / "data"), tmp_path / "backup", with_master_key=True)
    assert "events-20260101T000000000Z.jsonl" in {file.path for file in made.files}
    assert restore_backup(settings_of(tmp_path / "new"), tmp_path / "backup") == made


@pytest.mark.parametrize("key", ["../../evil.json", "external-data\\1.json", ".uploads/1"])
@pytest.mark.usefixtures("jobs")
def test_a_result_where_no_store_puts_one_is_missing(tmp_path: Path, key: str) -> None:
    (tmp_path / "evil.json").touch()
    with closing(sqlite3.connect(tmp_path / "data" / "fetcher.db")) as database:
        database.execute("UPDATE job SET result_path = ? WHERE result_path = ?", (key, PATHS[0]))
        database.commit()
    made = make_backup(settings_of(tmp_path / "data"), tmp_path / "backup", with_master_key=True)
    assert made.missing == (key,)
    assert restore_backup(settings_of(tmp_path / "new"), tmp_path / "backup") == made


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("MAX_MANIFEST_BYTES", 10, "too large to be restored"),
        ("may_be_backed_up", lambda _: True, "a path that no backup has"),
    ],
)
@pytest.mark.usefixtures("jobs")
def test_a_backup_that_no_restore_would_take_is_not_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, told: str
) -> None:
    monkeypatch.setattr(backup_module, name, value)
    with closing(sqlite3.connect(tmp_path / "data" / "fetcher.db")) as database:
        database.execute(
            "UPDATE job SET result_path = '.uploads/1' WHERE result_path = ?", (PATHS[0],)
        )
        database.commit()
    uploads = tmp_path / "data" / "objects" / ".uploads"
    uploads.mkdir(exist_ok=True)
    (uploads / "1").touch()
    with pytest.raises(BackupFailed, match=told) as failed:
        backup(tmp_path)
    assert not isinstance(failed.value, BackupRejected)
    assert not (tmp_path / "backup").exists()


@pytest.mark.usefixtures("jobs")
def test_a_backup_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BackupFailed, match="No space left"):
        backup(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_records_elsewhere_are_not_ours_to_back_up(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, mongo_host="m.test")
    with pytest.raises(BackupFailed, match="the records lie in MongoDB"):
        make_backup(settings, tmp_path / "b", with_master_key=False)


@pytest.mark.usefixtures("jobs")
def test_a_file_of_an_earlier_schema_is_backed_up_as_it_is(tmp_path: Path) -> None:
    """Before an upgrade is when one wants it."""
    database = tmp_path / "data" / "fetcher.db"
    for left in database.parent.glob("fetcher.db*"):
        left.unlink()
    with closing(sqlite3.connect(database)) as old:
        schema.STEPS[0](old)
        old.execute("PRAGMA user_version = 1")
        old.commit()
    assert (
        make_backup(
            settings_of(tmp_path / "data"), tmp_path / "backup", with_master_key=True
        ).schema
        == 1
    )
    assert restore_backup(settings_of(tmp_path / "new"), tmp_path / "backup").schema == 1


@pytest.mark.usefixtures("jobs")
def test_the_commands_say_what_they_did_and_end_by_their_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["fetcher", *arguments])
        with pytest.raises(SystemExit) as ended_with:
            main()
        assert isinstance(ended_with.value.code, int)
        return ended_with.value.code

    target = str(tmp_path / "backup")
    monkeypatch.setenv("FETCHER_DATA_DIR", str(tmp_path / "data"))
    assert run("backup", target, "--with-master-key") == 0
    assert capsys.readouterr().out.startswith(f"{target}: 7 files, ")
    assert run("restore", target) == 1
    assert "is not empty" in capsys.readouterr().err
    monkeypatch.setenv("FETCHER_DATA_DIR", str(tmp_path / "new"))
    assert run("restore", target, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["files"], told["masterKey"], told["missing"]) == (7, True, [])
    monkeypatch.setenv("FETCHER_DATA_DIR", str(tmp_path / "newer"))
    flip(tmp_path / "backup" / "fetcher.db")
    assert run("restore", target) == 3
    assert "fetcher.db: is not what was backed up" in capsys.readouterr().err


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
@pytest.mark.usefixtures("jobs")
def test_events_that_are_no_file_fail_the_backup(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    (tmp_path / "data" / "events.jsonl").unlink()
    make(tmp_path / "data" / "events.jsonl")
    with pytest.raises(BackupFailed, match=r"events\.jsonl: is no regular file"):
        backup(tmp_path)
    assert not (tmp_path / "backup").exists()


@pytest.mark.usefixtures("jobs")
def test_a_folder_that_is_read_only_is_backed_up_after_a_clean_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(still_file, "lies_read_only", lambda path: path.parent.name == "data")
    before = tree(tmp_path / "data")
    opened = sqlite3.connect
    addresses: list[str] = []

    def connect(address: str | Path, **options: Any) -> Any:
        addresses.append(str(address))
        return opened(address, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    source = backup(tmp_path)
    assert tree(tmp_path / "data") == before
    assert [each for each in addresses if "/data/" in each] == [
        f"{(tmp_path / 'data' / 'fetcher.db').as_uri()}?mode=ro&immutable=1"
    ]
    restore_backup(settings_of(tmp_path / "new"), source)


@pytest.mark.usefixtures("jobs")
def test_a_read_only_folder_in_which_a_service_starts_meanwhile_is_not_backed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([True, True])
    monkeypatch.setattr(
        snapshot, "is_still", lambda path: path.parent.name == "data" and next(looks, False)
    )
    with pytest.raises(BackupFailed, match="by a service meanwhile"):
        backup(tmp_path)


@pytest.mark.usefixtures("jobs")
def test_what_cannot_be_opened_for_its_read_only_folder_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "lies_read_only", lambda _: True)

    def refuse(*_: object, **__: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(BackupFailed, match="its folder is read-only"):
        backup(tmp_path)
