"""Whatever step of a job is its last one, nothing of it is left, and it is done all the same.

With ``FETCHER_TEST_SCALE=10`` it is every step in turn, else some, spread over the whole job.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import psycopg
import pytest
import trio
from mypy_boto3_s3 import S3Client
from pydantic import SecretStr

from fetcher.actors import lease_keeper
from fetcher.adapters.local import object_folder
from fetcher.bootstrap.adapters import Adapters, open_adapters
from fetcher.bridge import open_asyncio
from fetcher.domain.jobs import Job, JobStatus
from fetcher.settings import Role
from fetcher_engine import read_ahead
from tests.hygiene.interruption import Interruption
from tests.hygiene.one_job import Interrupt, JobProcess, ask_to_stop, cut, release
from tests.hygiene.remains import files_below, held
from tests.hygiene.result_places import Bucket, ResultPlace
from tests.hygiene.worlds import World, make_world
from tests.scale import scale_factor, scaled
from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.waiting import eventually

EVERY_POINT_SCALE: Final = 10
POINTS: Final[Mapping[bool, int]] = {False: 6, True: 2}
"""Of each kind of interruption in a run of CI size, by whether results lie in a bucket."""
NEVER: Final = 10**9
RUN_SECONDS: Final = 60.0


@pytest.fixture(params=["folder", "bucket"])
def world(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres_database: Callable[[], SqlAddress],
    s3_client: S3Client,
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
) -> World:
    if request.param == "folder":
        return make_world(tmp_path / "made", postgres_database(), bucket=None, note_bytes=300)
    name = s3_bucket()
    settings = {
        "object_storage_bucket": name,
        "object_storage_endpoint": s3_access.endpoint,
        "object_storage_region": s3_access.region,
        "object_storage_access_key_id": SecretStr(s3_access.access_key),
        "object_storage_secret_key": SecretStr(s3_access.secret_key),
        "object_storage_use_path_style": True,
    }
    bucket = Bucket(s3_client, name, settings)
    # so much that it is an upload of two parts
    return make_world(tmp_path / "made", postgres_database(), bucket=bucket, note_bytes=12_000)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small job has all the steps of a large one: it spools, and writes several times."""
    monkeypatch.setattr(read_ahead, "MEMORY_BYTES", 16 * 1024)
    monkeypatch.setattr(object_folder, "BUFFER_BYTES", 32 * 1024)
    monkeypatch.setattr(lease_keeper, "CHECK_SECONDS", 0.02)


@pytest.fixture
def sessions(world: World, postgres: SqlAddress) -> Iterator[Callable[[], Sequence[str]]]:
    """What the sessions of the job's database are at."""
    asked = replace(postgres, database="postgres")
    with psycopg.connect(asked.conninfo, autocommit=True, connect_timeout=10) as admin:

        def states() -> Sequence[str]:
            found = admin.execute(
                "SELECT state FROM pg_stat_activity WHERE datname = %s", [world.database.database]
            )
            return [state for (state,) in found]

        yield states


def check_record(job: Job, interrupt: Interrupt, results: ResultPlace) -> None:
    """One of the states that a job may be left in."""
    objects = results.keys()
    if job.status is JobStatus.PROCESSING:
        assert interrupt is cut, "whoever could say so gave its lease back"
        assert job.lease_token is not None
        assert job.lease_until is not None
    elif job.status is JobStatus.PENDING:
        assert (job.lease_token, job.lease_until, job.result) == (None, None, None)
        assert not objects
    elif job.status is JobStatus.COMPLETED:
        assert job.result is not None
        assert objects == {job.result.path}
    else:
        assert job.status is JobStatus.CANCELLED
        assert not objects


async def check_nothing_is_at_work(
    adapters: Adapters, sessions: Callable[[], Sequence[str]], before: Counter[str]
) -> None:
    """While the process lives on: sessions may wait for the next job, in no transaction."""
    assert adapters.spool is not None
    await eventually(
        lambda: not [name for name in held() - before if name.startswith("thread ")],
        deadline_seconds=5,
        what="no thread is at work",
    )
    assert adapters.session_use()[0] == 0
    assert adapters.spool.use.bytes == 0
    await eventually(
        lambda: set(sessions()) <= {"idle"}, deadline_seconds=5, what="no statement runs"
    )


async def run_once(
    process: JobProcess, interrupt: Interrupt, at: int, sessions: Callable[[], Sequence[str]]
) -> Interruption:
    before = held()
    with trio.fail_after(RUN_SECONDS):
        async with (
            open_asyncio(pytest.fail),
            open_adapters(process.settings, Role.ALL) as adapters,
        ):
            interruption = await process.run(adapters, interrupt, at=at)
            await check_nothing_is_at_work(adapters, sessions, before)
            check_record(await process.job(adapters), interrupt, process.results)
    left: list[object] = []

    def is_clean() -> bool:
        left[:] = [*(held() - before).elements(), *sessions()]
        return not left

    with trio.move_on_after(5):
        await eventually(is_clean, deadline_seconds=10)
    assert not left, f"held after point {at}"
    assert not process.results.unfinished()
    assert not files_below(process.folder / "spool")
    return interruption


async def check_interrupted_at(
    at: int,
    interrupt: Interrupt,
    world: World,
    sessions: Callable[[], Sequence[str]],
    folder: Path,
) -> bool:
    """Whether the job was still at work by then."""
    process = world.process(folder)
    interruption = await run_once(process, interrupt, at, sessions)
    await run_once(process, cut, NEVER, sessions)
    events = process.events()
    statuses = {(event["jobId"], event["status"]) for event in events}
    objects = process.results.keys()
    if statuses == {(str(world.job.id), "failed")}:
        assert interrupt is ask_to_stop
        assert events[0]["metadata"]["error"]["message"] == "job cancelled"
        assert not objects
    else:
        assert statuses == {(str(world.job.id), "completed")}
        assert objects == {events[0]["result"]["path"]}
        assert process.document(events[0]) == world.document
    if interrupt is not cut:
        assert len(events) == 1, "only who is cut between publishing and noting it says it twice"
    shutil.rmtree(folder)
    return interruption.has_happened


@pytest.mark.parametrize("interrupt", [cut, release, ask_to_stop])
async def test_a_job_that_is_interrupted_at_any_step_leaves_nothing_and_is_done_again(
    interrupt: Interrupt,
    world: World,
    sessions: Callable[[], Sequence[str]],
    tmp_path: Path,
) -> None:
    whole = await run_once(world.process(tmp_path / "whole"), interrupt, NEVER, sessions)
    assert whole.points > 200, "else the instrument saw no job"
    points = range(1, whole.points + 1)
    count = (
        len(points)
        if scale_factor() >= EVERY_POINT_SCALE
        else scaled(POINTS[world.bucket is not None])
    )
    width = len(points) / count
    draw = random.Random(interrupt.__name__)  # noqa: S311 - the same points in each run
    happened = 0
    for part in range(count):
        at = points[int((part + draw.random()) * width)] if width > 1 else points[part]
        happened += await check_interrupted_at(at, interrupt, world, sessions, tmp_path / str(at))
    # the number of steps differs a little from run to run
    assert happened >= count * 0.8
