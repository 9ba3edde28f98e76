"""The embedded default on disks that are full: what is asked is answered, and goes on by itself.

The disks are of the process's own mount namespace (:mod:`tests.faults.small_disk`).
"""

import json
import resource
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from fetcher.consumer import derive_keys, open_result
from tests.e2e.cluster import Api, postgres_connection
from tests.faults.small_disk import (
    Place,
    SmallDisk,
    embedded_on_small_disk,
    started_twice,
)
from tests.scale import IS_NIGHTLY
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

WAIT_SECONDS: Final = 60.0
AFTERWARDS_SECONDS: Final = 400.0
"""An event is tried again after five minutes at most."""
MOST_TRIES: Final = 300
TIMES: Final = {
    "JOB_LEASE_SEC": "4",
    "JOB_LEASE_RENEW_SEC": "1",
    "JOB_LEASE_MARGIN_SEC": "1",
    "JOB_REAP_SEC": "0.5",
    "JOB_DISPATCH_SWEEP_SEC": "0.5",
    "OUTBOX_REPAIR_SEC": "1",
    "DATASOURCE_INCLUDE_VIEWS": "true",
    "JOB_PREFLIGHT_TEST": "false",
    "JOBS_MAX_PENDING": "0",
}
QUICK: Final = {"sales_db": {"orders": ["id"]}}
SLOW: Final = {"sales_db": {"slow": ["id", "note", "late"]}}
SPOOLED: Final = {
    "a_db": {"slow": ["id", "note", "late"]},
    "b_db": {"big": ["id", "note"]},
}
ROWS: Final = {"orders": 1000, "slow": 30, "big": 1500}
PLACES: Final = [each for each in Place if each is not Place.BACKUP] if IS_NIGHTLY else [Place.DATA]
FREE_BLOCKS: Final = (0, 1, 2, 4, 8, 16, 32)
in_make_faults = pytest.mark.skipif(not IS_NIGHTLY, reason="a part of `make faults`")


@pytest.fixture
def sources(shop: SqlAddress) -> SqlAddress:
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(
            "CREATE VIEW slow AS SELECT n AS id, repeat(md5(n::text), 2048) AS note,"
            " pg_sleep(0.1) IS NULL AS late FROM generate_series(1, 30) AS n"
        )
        database.execute(
            "CREATE VIEW big AS SELECT n AS id, repeat(md5(n::text), 256) AS note"
            " FROM generate_series(1, 1500) AS n"
        )
    return shop


@dataclass
class Jobs:
    """Those that were accepted, and what was answered to all."""

    api: Api
    accepted: list[str]

    def ask(self, fields: object) -> int:
        answer = self.api.post_job(fields, n=secrets.token_hex(8))
        if answer.status == 202:
            self.accepted.append(answer.body["jobId"])
        else:
            assert (answer.status, answer.body["code"]) == (503, "FET-0003"), answer.body
        return answer.status

    def ask_until_refused(self) -> None:
        """The write-ahead log has room for some."""
        assert any(self.ask(QUICK) == 503 for _ in range(MOST_TRIES))

    def records(self) -> dict[str, Any]:
        return {
            job_id: self.api.wait_for_job(job_id, deadline_seconds=WAIT_SECONDS)
            for job_id in self.accepted
        }


def connect(api: Api, shop: SqlAddress) -> None:
    for name in ("sales_db", "a_db", "b_db"):
        assert api.connect(postgres_connection(shop, configName=name)).status == 201


@pytest.mark.parametrize("place", PLACES)
def test_on_a_full_disk_nothing_is_lost_and_with_room_it_goes_on(
    tmp_path: Path, sources: SqlAddress, place: Place
) -> None:
    with embedded_on_small_disk(tmp_path, place, **TIMES) as (process, api, disk):
        jobs = Jobs(api, [])
        connect(api, sources)
        jobs.ask(QUICK)
        api.wait_for_job(jobs.accepted[0])
        jobs.ask(SPOOLED if place is Place.SPOOL else SLOW)
        api.wait_for_status(jobs.accepted[1], "processing")
        disk.fill()
        while_it_is_full(place, jobs, disk)
        disk.give_room()
        jobs.ask(QUICK)
        check_afterwards(process, jobs, disk)


def while_it_is_full(place: Place, jobs: Jobs, disk: SmallDisk) -> None:
    running = jobs.accepted[1]
    if place is Place.DATA:
        jobs.ask_until_refused()
        assert jobs.api.call("GET", "/readyz").status == 503
    elif place is Place.RESULTS:
        jobs.ask(QUICK)
        failed = jobs.api.wait_for_job(running)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "storage_unavailable")
        assert jobs.api.call("GET", "/readyz").status == 503
    else:
        # the event file's last block has room for one or two of them
        for _ in range(4):
            jobs.ask(QUICK)
        assert {job["status"] for job in jobs.records().values()} == {"completed"}
    if place is Place.EVENTS:
        assert 0 < len(event_ids(disk)) < len(jobs.accepted)
    if place is Place.SPOOL:
        assert '"msg":"spool_failed"' in disk.log()


def check_afterwards(process: FetcherProcess, jobs: Jobs, disk: SmallDisk) -> None:
    """Each job that was accepted has its end, its event and its object alone; nobody restarted."""
    records = jobs.records()
    for job in records.values():
        if job["status"] == "failed":
            assert job["error"]["code"] == "storage_unavailable"
        else:
            assert job["status"] == "completed"
            check_result(disk, job)
    assert (
        records[jobs.accepted[0]]["status"] == records[jobs.accepted[-1]]["status"] == "completed"
    )
    told = {f"fetcher.job.{job['status']}.{job_id}" for job_id, job in records.items()}
    eventually_sync(
        lambda: set(event_ids(disk)) == told,
        deadline_seconds=AFTERWARDS_SECONDS,
        what="every event is in the file",
    )
    paths = {job["resultPath"] for job in records.values() if job["status"] == "completed"}
    eventually_sync(
        lambda: stored_files(disk.data / "objects") == paths,
        deadline_seconds=WAIT_SECONDS,
        what="each completed job has its object alone",
    )
    eventually_sync(
        lambda: jobs.api.call("GET", "/readyz").status == 200,
        deadline_seconds=WAIT_SECONDS,
        what="it is ready again",
    )
    assert process.exit_code is None
    assert "actor_crashed" not in disk.log()


def event_ids(disk: SmallDisk) -> list[str]:
    """A torn line is no event: it makes this fail."""
    text = (disk.data / "events.jsonl").read_text()
    whole, _, torn = text.rpartition("\n")
    ids = [json.loads(line)["headers"]["ce-id"] for line in whole.splitlines()]
    return ids if not torn else []


def stored_files(objects: Path) -> set[str]:
    """Unfinished ones too, but for the ballast."""
    files = (file for file in objects.rglob("*") if file.is_file())
    return {str(file.relative_to(objects)) for file in files}


def check_result(disk: SmallDisk, job: Any) -> None:
    keys = derive_keys((disk.data / "master.key").read_text())
    with open_result(
        (disk.data / "objects" / job["resultPath"]).read_bytes(),
        storage_key=keys.storage,
        hmac_key=keys.external_hmac,
        expected_hmac=job["resultHmac"],
        expected_size=job["sizeBytes"],
    ) as opened:
        document = json.loads(opened.read())
    for tables in document.values():
        for table, rows in tables.items():
            assert len(rows) == ROWS[table]


@contextmanager
def writes_refused(process: FetcherProcess) -> Iterator[None]:
    """Each write to a file, to whichever part of it, log and records included."""
    soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (soft, hard))


@in_make_faults
def test_a_job_outlives_a_disk_that_takes_nothing_at_all(
    tmp_path: Path, sources: SqlAddress
) -> None:
    """Not even how the job ends can be written: it is run again when it can."""
    with embedded_on_small_disk(tmp_path, Place.LOG, **TIMES) as (process, api, disk):
        jobs = Jobs(api, [])
        connect(api, sources)
        jobs.ask(SLOW)
        api.wait_for_status(jobs.accepted[0], "processing")
        with writes_refused(process):
            assert jobs.ask(QUICK) == 503
            cancel = api.call("POST", f"/v1/fetcher/{jobs.accepted[0]}/cancel")
            assert (cancel.status, cancel.body["code"]) == (503, "FET-0003")
            lease_seconds = float(TIMES["JOB_LEASE_SEC"])
            eventually_sync(
                lambda: (
                    api.job(jobs.accepted[0])["status"] == "processing"
                    and seconds_since(api.job(jobs.accepted[0])["startedAt"]) > lease_seconds + 2
                ),
                deadline_seconds=WAIT_SECONDS,
                what="its lease has run out",
            )
        check_afterwards(process, Jobs(api, jobs.accepted), disk)
        [record] = jobs.records().values()
        assert len(record["attempts"]) > 1


def seconds_since(text: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()


@in_make_faults
@pytest.mark.parametrize("free_blocks", FREE_BLOCKS)
def test_a_start_on_a_full_disk_is_refused_in_words_and_works_once_there_is_room(
    tmp_path: Path, free_blocks: int
) -> None:
    with started_twice(tmp_path, free_blocks=free_blocks) as (first_code, first_words):
        assert first_code == 1
        assert "failed to initialize all service: " in first_words
        assert "Traceback" not in first_words


@in_make_faults
def test_a_backup_that_finds_no_room_says_so_and_leaves_nothing(
    tmp_path: Path, sources: SqlAddress
) -> None:
    with embedded_on_small_disk(tmp_path, Place.BACKUP, **TIMES) as (_, api, disk):
        jobs = Jobs(api, [])
        connect(api, sources)
        for fields in (SLOW, QUICK):
            jobs.ask(fields)
        jobs.records()
        for room in (0, 64 * 1024, 1024 * 1024):
            disk.fill(leaving_bytes=room)
            code, words = disk.run(["backup", str(disk.inside / "backup")])
            assert code == 1
            assert words.startswith("backup: "), words
            assert [file.name for file in disk.path.iterdir()] == [disk.BALLAST]
            disk.give_room()
        code, words = disk.run(["backup", str(disk.inside / "backup")])
        assert (code, [file.name for file in disk.path.iterdir()]) == (0, ["backup"]), words
