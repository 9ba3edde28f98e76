"""A backup that is not as it was made, or has no room, is not restored."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from fetcher.adapters.local.data_folder import own_data_folder
from fetcher.adapters.sqlite import schema
from fetcher.bootstrap.backup import restore_backup
from fetcher.crypto.keys import generate_master_key
from fetcher.domain.backups import BackupFailed, BackupRejected
from fetcher.domain.errors import StartRefused
from tests.unit.bootstrap.backups import PATHS, backup, flip, settings_of, tree


@pytest.mark.usefixtures("jobs")
def test_the_key_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    source = backup(tmp_path, with_master_key=False)
    assert "master.key" not in tree(source)
    with pytest.raises(BackupFailed, match=r"put master\.key into the folder, or set APP_ENC_KEY"):
        restore_backup(settings_of(tmp_path / "new"), source)
    assert set(tree(tmp_path / "new")) == {"lock"}
    key = (tmp_path / "data" / "master.key").read_bytes()
    (tmp_path / "new" / "master.key").write_bytes(key)
    restore_backup(settings_of(tmp_path / "new"), source)
    assert tree(tmp_path / "new")["master.key"] == key


@pytest.mark.usefixtures("jobs")
def test_another_key_is_found_out(tmp_path: Path) -> None:
    source = backup(tmp_path, with_master_key=False)
    other = SecretStr(generate_master_key())
    with pytest.raises(BackupRejected, match="with another master key"):
        restore_backup(settings_of(tmp_path / "new", app_enc_key=other), source)
    assert set(tree(tmp_path / "new")) == {"lock"}


def edit(source: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((source / "manifest.json").read_bytes())
    change(document)
    (source / "manifest.json").write_text(json.dumps(document))


def _bend(path: str) -> Callable[[Path], None]:
    def bend(source: Path) -> None:
        edit(source, lambda document: document["files"][0].update(path=path))

    return bend


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda source: flip(source / "objects" / PATHS[0]), "is not what was backed up"),
        (lambda source: flip(source / "fetcher.db"), "is not what was backed up"),
        (lambda source: (source / "events.jsonl").write_text("{}\n{}\n{}\n"), "is not what was"),
        (lambda source: (source / "objects" / PATHS[1]).unlink(), "No such file"),
        (lambda source: (source / "manifest.json").write_text("[]"), "is no manifest"),
        (lambda source: (source / "manifest.json").unlink(), "No such file"),
        (lambda source: flip(source / "manifest.hmac"), "or changed since"),
        (lambda source: edit(source, lambda d: d.update(version="9")), "or changed since"),
        (lambda source: edit(source, lambda d: d.update(format=2)), "its format is not 1"),
        (lambda source: edit(source, lambda d: d.update(schema=-1)), "schema: is no count"),
        (lambda source: edit(source, lambda d: d["files"].clear()), "one is missing"),
        (_bend("../evil"), "a path that no backup has"),
        (_bend("/etc/cron.d/evil"), "a path that no backup has"),
        (_bend("objects/../../evil"), "a path that no backup has"),
        (_bend("lock"), "a path that no backup has"),
        (_bend("objects"), "a path that no backup has"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.usefixtures("jobs")
def test_what_is_not_as_it_was_made_leaves_the_folder_empty(
    tmp_path: Path, change: Callable[[Path], object], told: str
) -> None:
    source = backup(tmp_path)
    change(source)
    with pytest.raises(BackupFailed, match=told):
        restore_backup(settings_of(tmp_path / "new"), source)
    assert set(tree(tmp_path / "new")) <= {"lock"}


@pytest.mark.usefixtures("jobs")
def test_a_link_in_a_backup_is_not_followed(tmp_path: Path) -> None:
    source = backup(tmp_path)
    target = source / "objects" / PATHS[0]
    kept = target.rename(tmp_path / "elsewhere")
    target.symlink_to(kept)
    with pytest.raises(BackupFailed, match=PATHS[0]):
        restore_backup(settings_of(tmp_path / "new"), source)


def _linked(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / "elsewhere"))


def _in_place_of(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize("name", ["manifest.json", "manifest.hmac", "fetcher.db", "events.jsonl"])
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/null")])
@pytest.mark.usefixtures("jobs")
def test_what_is_no_regular_file_is_not_what_was_backed_up(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    source = backup(tmp_path)
    _in_place_of(source / name, make)
    with pytest.raises(BackupRejected, match=f"{name}: is no regular file"):
        restore_backup(settings_of(tmp_path / "new"), source)
    assert set(tree(tmp_path / "new")) <= {"lock"}


@pytest.mark.parametrize("name", ["objects", "objects/external-data"])
@pytest.mark.usefixtures("jobs")
def test_a_linked_folder_of_a_backup_is_not_followed(tmp_path: Path, name: str) -> None:
    source = backup(tmp_path)
    _linked(source / name)
    with pytest.raises(BackupRejected, match="is no regular file"):
        restore_backup(settings_of(tmp_path / "new"), source)


@pytest.mark.parametrize("name", ["manifest.hmac", "fetcher.db", f"objects/{PATHS[1]}"])
@pytest.mark.usefixtures("jobs")
def test_a_part_that_is_missing_is_not_what_was_backed_up(tmp_path: Path, name: str) -> None:
    source = backup(tmp_path)
    (source / name).unlink()
    with pytest.raises(BackupRejected, match="No such file"):
        restore_backup(settings_of(tmp_path / "new"), source)


@pytest.mark.usefixtures("jobs")
def test_a_folder_that_is_no_backup_is_not_called_a_changed_one(tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="No such file") as failed:
        restore_backup(settings_of(tmp_path / "new"), tmp_path / "nothing")
    assert not isinstance(failed.value, BackupRejected)


@pytest.mark.usefixtures("jobs")
def test_a_newer_schema_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = backup(tmp_path)
    monkeypatch.setattr(schema, "VERSION", schema.VERSION - 1)
    with pytest.raises(BackupRejected, match=f"has schema {schema.VERSION + 1}, newer than"):
        restore_backup(settings_of(tmp_path / "new"), source)
    assert set(tree(tmp_path / "new")) == {"lock"}


@pytest.mark.usefixtures("jobs")
def test_a_folder_that_is_not_empty_or_in_use_is_refused(tmp_path: Path) -> None:
    source = backup(tmp_path)
    before = tree(tmp_path / "data")
    with pytest.raises(BackupFailed, match="is not empty: it holds dead-letters"):
        restore_backup(settings_of(tmp_path / "data"), source)
    assert tree(tmp_path / "data") == before
    with own_data_folder(tmp_path / "new"), pytest.raises(StartRefused, match="is in use"):
        restore_backup(settings_of(tmp_path / "new"), source)


@pytest.mark.usefixtures("jobs")
def test_a_restore_that_was_killed_keeps_the_service_from_starting(tmp_path: Path) -> None:
    with own_data_folder(tmp_path / "new") as folder:
        folder.restore_mark.touch()
    with (
        pytest.raises(StartRefused, match="a restore did not end: empty the folder"),
        own_data_folder(tmp_path / "new"),
    ):
        pytest.fail("half a folder was opened")
