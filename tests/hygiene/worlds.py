"""A job that waits in a data folder, and the two databases that it reads."""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import trio

from fetcher.bootstrap.adapters import open_adapters
from fetcher.bridge import open_asyncio
from fetcher.domain.connections import SourceType
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import Job, JobStatus
from fetcher.settings import Role, Settings
from tests.hygiene.one_job import JobProcess
from tests.hygiene.result_places import Bucket, ObjectFolder
from tests.servers.addresses import SqlAddress
from tests.unit.commands.job_bench import NOW, a_connection

ROWS: Final = 400
FIELDS: Final[Mapping[str, str]] = {"lite": "items", "elephant": "orders"}


@dataclass(frozen=True)
class World:
    """A data folder with a job that waits, to be copied, and the database that the job reads."""

    made: Path
    settings: Settings
    job: Job
    database: SqlAddress
    bucket: Bucket | None
    """None: results lie in the data folder."""
    document: Mapping[str, object]
    """The job's result."""

    def process(self, folder: Path) -> JobProcess:
        """A copy, as if nobody had worked on the job yet."""
        shutil.copytree(self.made, folder)
        if self.bucket is not None:
            self.bucket.empty()
        return JobProcess(
            settings=self.settings.model_copy(update={"fetcher_data_dir": folder}),
            job_id=self.job.id,
            results=self.bucket or ObjectFolder(folder / "objects"),
        )


def make_world(
    folder: Path, database: SqlAddress, *, bucket: Bucket | None, note_bytes: int
) -> World:
    """Two tables of 400 rows, with so many bytes in each."""
    with psycopg.connect(database.conninfo, autocommit=True) as elephant:
        elephant.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        elephant.execute(
            "INSERT INTO orders SELECT n, repeat('o', %s) FROM generate_series(0, %s) n",
            [note_bytes, ROWS - 1],
        )
    (folder / "sources").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    with closing(sqlite3.connect(folder / "sources" / "lite.db")) as lite, lite:
        lite.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, note TEXT)")
        notes = [(n, "o" * note_bytes) for n in range(ROWS)]
        lite.executemany("INSERT INTO items VALUES (?, ?)", notes)
    settings = Settings(
        fetcher_data_dir=folder,
        job_reap_sec=0.05,
        outbox_repair_sec=0.05,
        rabbitmq_numbers_of_workers=1,
        **(bucket.settings if bucket is not None else {}),  # type: ignore[arg-type] # as they are
    )
    job = Job(
        id=new_job_id(),
        status=JobStatus.PENDING,
        created_at=NOW,
        mapped_fields={name: {table: ("id", "note")} for name, table in FIELDS.items()},
        request_hash="h",
        metadata={"source": "acme-reports"},
    )
    trio.run(_fill, settings, job, database)
    document = {
        name: {table: [{"id": n, "note": "o" * note_bytes} for n in range(ROWS)]}
        for name, table in FIELDS.items()
    }
    return World(folder, settings, job, database, bucket, document)


async def _fill(settings: Settings, job: Job, database: SqlAddress) -> None:
    async with open_asyncio(_no_stray), open_adapters(settings, Role.ALL) as adapters:
        elephant = a_connection(
            config_name="elephant",
            host=database.host,
            port=database.port,
            database_name=database.database,
            username=database.user,
            password_encrypted=adapters.cipher.encrypt(database.password or "none"),
            encryption_key_version=adapters.cipher.key_version,
        )
        lite = a_connection(
            config_name="lite",
            type=SourceType.SQLITE,
            host="",
            port=0,
            database_name="lite.db",
            username="",
            password_encrypted="",
        )
        for connection in (elephant, lite):
            await adapters.records.connections.insert(connection)
        await adapters.records.jobs.insert(job)


def _no_stray(exception_type: str) -> None:
    raise AssertionError(exception_type)
