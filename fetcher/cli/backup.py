"""`fetcher backup` and `fetcher restore`: the data folder of the embedded default."""

from collections.abc import Callable
from pathlib import Path

from fetcher.bootstrap.backup import make_backup, restore_backup
from fetcher.cli.exits import EXIT_FAILED, EXIT_REJECTED, done_all_the_same
from fetcher.cli.printing import complain, print_json, say
from fetcher.domain.backups import BackupFailed, BackupRejected, Manifest
from fetcher.domain.errors import StartRefused
from fetcher.settings import Settings


def run_backup(settings: Settings, target: Path, *, with_master_key: bool, as_json: bool) -> int:
    def make() -> Manifest:
        return make_backup(settings, target, with_master_key=with_master_key)

    return _ended("backup", make, target, as_json=as_json)


def run_restore(settings: Settings, source: Path, *, as_json: bool) -> int:
    def restore() -> Manifest:
        return restore_backup(settings, source)

    return _ended("restore", restore, settings.fetcher_data_dir, as_json=as_json)


def _ended(name: str, action: Callable[[], Manifest], place: Path, *, as_json: bool) -> int:
    try:
        manifest = action()
    except (BackupFailed, StartRefused) as failed:
        complain(f"{name}: {failed}")
        return EXIT_REJECTED if isinstance(failed, BackupRejected) else EXIT_FAILED
    with done_all_the_same(f"{name}: {place} is complete"):
        _show(manifest, name, place, as_json=as_json)
    return 0


def _show(manifest: Manifest, name: str, place: Path, *, as_json: bool) -> None:
    for key in manifest.missing:
        complain(f"{name}: the object folder did not have {key}")
    if as_json:
        facts = {
            "path": str(place),
            "files": len(manifest.files),
            "bytes": manifest.size_bytes,
            "schema": manifest.schema,
            "createdAt": manifest.created_at.isoformat(),
            "masterKey": manifest.holds_master_key,
            "missing": list(manifest.missing),
        }
        print_json(facts, indent=2)
        return
    key_told = "with the master key" if manifest.holds_master_key else "without the master key"
    say(
        f"{place}: {len(manifest.files)} files, {manifest.size_bytes} bytes, {key_told},"
        f" records of {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC, verified"
    )
