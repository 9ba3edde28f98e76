"""Every dependency fails in every way while jobs run: none is lost, stuck, stored twice or untold.

``FETCHER_TEST_SEED`` replays the faults and their order. ``FETCHER_TEST_FAULTS_DOCUMENT`` names the
page that the table is written into.
"""

import os
import random
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import pymongo
import pytest
from mypy_boto3_s3 import S3Client

from tests.e2e.cluster import Cluster, postgres_connection
from tests.faults.faults import Direction, Fault, Kind
from tests.faults.matrix import (
    EVERYTHING,
    MANAGER_MONGODB,
    PACE_SECONDS,
    SOURCE,
    WORKERS_MONGODB,
    WORKERS_RABBITMQ,
    WORKERS_S3,
    SteadyLoad,
    Step,
    proxied,
    run_steps,
)
from tests.faults.matrix_outcome import BEGIN, END, Outcome, look, table, write_into
from tests.faults.sigterm_load import Records, make_sources
from tests.scale import IS_NIGHTLY, scaled
from tests.servers.addresses import SqlAddress
from tests.servers.redis_servers import own_redis
from tests.servers.waiting import DeadlineMissedError, eventually_sync

SMALL = (
    (WORKERS_MONGODB, Kind.RESET),
    (WORKERS_RABBITMQ, Kind.CUT),
    (WORKERS_S3, Kind.STALL),
    (MANAGER_MONGODB, Kind.SLICER),
)
MOST_JOBS = 1_000
SHORTEST_SECONDS = 1.0
ENDING_SECONDS = 120.0


def test_whatever_link_fails_in_whatever_way_no_job_is_lost(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, tmp_path: Path
) -> None:
    seed = int(os.environ.get("FETCHER_TEST_SEED") or secrets.randbits(32))
    print(f"FETCHER_TEST_SEED={seed}")
    chance = random.Random(seed)  # noqa: S311 - faults, no secret
    plan = list(EVERYTHING if IS_NIGHTLY else SMALL)
    chance.shuffle(plan)
    jobs = min(scaled(100), MOST_JOBS) if IS_NIGHTLY else len(plan)
    hold_seconds = max(SHORTEST_SECONDS, jobs / len(plan) * PACE_SECONDS)
    make_sources(shop)
    cluster.changes.update(
        DATASOURCE_INCLUDE_VIEWS="true",
        # So that jobs meet the source's faults, rather than be refused for them.
        JOB_PREFLIGHT_TEST="false",
        JOB_LEASE_SEC="10",
        JOB_LEASE_RENEW_SEC="2",
        JOB_LEASE_MARGIN_SEC="2",
    )
    redis_folder = tmp_path / "redis"
    redis_folder.mkdir()
    with (
        pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri) as client,
        own_redis(redis_folder) as redis,
        proxied(cluster, shop, redis.address.port, seed=seed) as (proxies, managers, workers),
        managers.manager() as (_, api),
        workers.worker("left"),
        workers.worker("right"),
    ):
        address = postgres_connection(shop, host="127.0.0.1", port=proxies[SOURCE].port)
        connection = api.connect(address)
        assert connection.status == 201
        records = Records(client, cluster.mongo_name)
        load = SteadyLoad(
            api,
            connection.body["id"],
            chance=random.Random(seed),  # noqa: S311 - as above
            active_count=records.active_count,
        )
        with load.flowing():
            steps = run_steps(proxies, records, chance, plan, hold_seconds=hold_seconds)
        wait_for_the_last(records)
        outcome = look(cluster, records.all_by_id(), load.accepted, s3_client)
    print(f"answers: {dict(load.answers)}; failed: {dict(outcome.failed)}")
    text = table(outcome, steps, seed=seed, hold_seconds=hold_seconds)
    print(text)
    assert load.unanswered == []
    check(outcome)
    if document := os.environ.get("FETCHER_TEST_FAULTS_DOCUMENT"):
        write_into(Path(document), text)


def wait_for_the_last(records: Records) -> None:
    try:
        eventually_sync(lambda: not records.active_ids(), deadline_seconds=ENDING_SECONDS)
    except DeadlineMissedError as missed:
        print(missed)  # what is stuck is counted


def check(outcome: Outcome) -> None:
    """A source's fault fails the jobs that met it, and no other fault fails one."""
    assert outcome.lost == set()
    assert outcome.stuck == set()
    assert outcome.partial_objects == []
    assert outcome.wrong_objects == set()
    assert outcome.events_missing == set()
    assert outcome.event_ids == outcome.jobs
    assert outcome.failed.keys() <= {"sales_db"}
    assert outcome.completed + outcome.failed["sales_db"] == outcome.jobs > 0


@pytest.mark.parametrize("times", [1, 2])
def test_the_table_is_written_into_its_place(tmp_path: Path, times: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    fault = Fault(kind=Kind.CUT, direction=Direction.UP)
    steps = [
        Step(SOURCE, fault, 1.0, met=4, recovery_seconds=0.5, drained_seconds=2.0),
        Step(WORKERS_S3, fault, 1.0, met=0, recovery_seconds=1.5, drained_seconds=3.0),
    ]
    outcome = Outcome(
        jobs=3,
        completed=2,
        failed=Counter({"sales_db": 1}),
        lost=set(),
        stuck={"a"},
        partial_objects=[],
        wrong_objects=set(),
        events_missing=set(),
        event_ids=3,
    )
    for _ in range(times):
        write_into(page, table(outcome, steps, seed=7, hold_seconds=1.0))
    before, _, rest = page.read_text().partition(BEGIN)
    found, _, after = rest.partition(END)
    assert (before, after) == ("before\n", "after\n")
    assert "| 3 | 2 | 1 | 0 | 1 | 0 | 0 | 3 |" in found
    assert "median 1.00 s, worst 1.5 s" in found
    assert "| cut | 0.5 |  |  |  |  |  | (1.5) |" in found
    assert "old" not in found
