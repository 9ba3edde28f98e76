"""A data folder that is backed up, and what lies in a folder."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from fetcher.adapters.local.data_folder import own_data_folder
from fetcher.adapters.local.object_folder import open_object_folder
from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.bootstrap.backup import make_backup
from fetcher.domain.jobs import Job
from fetcher.settings import Settings
from tests.contract.records.builders import RESULT, completed, ended, failed

PATHS = ("external-data/1.json", "external-data/deep/2.json")


async def make_folder(path: Path) -> list[Job]:
    """Two results, one that was deleted, one failed job."""
    made = []
    with own_data_folder(path) as folder:
        folder.master_key()
        async with (
            open_sqlite_records(folder.database) as store,
            open_object_folder(folder.objects) as objects,
        ):
            for key in (*PATHS, "external-data/gone.json"):
                async with objects.upload(key) as upload:
                    await upload.write(key.encode() * 1000)
                    await upload.complete()
                facts = replace(RESULT, path=key)
                made.append(await ended(store, completed(result=facts)))
            await store.jobs.mark_result_deleted(made[2].id, at=datetime.now(UTC))
            await objects.delete("external-data/gone.json")
            async with objects.upload("external-data/nobodys.json") as upload:
                await upload.complete()
            made.append(await ended(store, failed()))
        for file, text in {
            "events.jsonl": '{"n":1}\n{"torn',
            "events-20260101T000000000Z.jsonl": '{"n":0}\n',
            "dead-letters.jsonl": "",
        }.items():
            (path / file).write_text(text)
    return made


def settings_of(folder: Path, **changes: object) -> Settings:
    return Settings(fetcher_data_dir=folder, **changes)  # type: ignore[arg-type] # as they are


def backup(tmp_path: Path, *, with_master_key: bool = True) -> Path:
    target = tmp_path / "backup"
    make_backup(settings_of(tmp_path / "data"), target, with_master_key=with_master_key)
    return target


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
