"""SIGTERM again and again while jobs flow: nothing is lost, nothing is stored twice."""

import os
import random
import secrets
import signal
import time
from contextlib import ExitStack
from typing import Any

import pymongo
import pytest
from mypy_boto3_s3 import S3Client

from tests.e2e.cluster import START_SECONDS, Api, Cluster, postgres_connection
from tests.faults.sigterm_load import Load, Records, check_ends, jobs_in_queue, make_sources
from tests.scale import IS_NIGHTLY, scaled
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

ROUNDS = 5 if IS_NIGHTLY else 3
SERIES = range(scaled(1))
"""A nightly run has ten series, thus 50 rounds; each series is a test of its own, with a limit."""
DRAIN_SECONDS = 0.3
JOB_WAIT_SECONDS = 1.0
GIVING_BACK_SECONDS = 30.0
"""Beside both: giving jobs back, the relay's last round, and closing, each with its deadline."""
LATEST_SECONDS = 2.0


@pytest.mark.parametrize("series", SERIES)
def test_jobs_flow_while_workers_are_told_to_stop_and_none_is_lost_or_stored_twice(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, series: int
) -> None:
    """Both workers are told at once in every second round: then the queue itself is looked at."""
    seed = int(os.environ.get("FETCHER_TEST_SEED") or secrets.randbits(32))
    print(f"series {series}: FETCHER_TEST_SEED={seed}")
    chance = random.Random(seed)  # noqa: S311 - moments, no secrets
    make_sources(shop)
    cluster.changes.update(
        DATASOURCE_INCLUDE_VIEWS="true",
        # Nothing here is to be mended by a lease that runs out.
        JOB_LEASE_SEC="60",
        JOB_LEASE_RENEW_SEC="15",
        JOB_LEASE_MARGIN_SEC="10",
        READYZ_DRAIN_DELAY_SEC=str(DRAIN_SECONDS),
        SHUTDOWN_JOB_WAIT_SEC=str(JOB_WAIT_SECONDS),
    )
    with (
        pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri) as client,
        cluster.manager() as (_, api),
    ):
        assert api.connect(postgres_connection(shop)).status == 201
        load = Load(api, Records(client, cluster.mongo_name))
        with Workers(cluster) as workers, load.flowing():
            for number in range(ROUNDS):
                workers.start_missing()
                eventually_sync(
                    lambda: load.mongo.running_count() > 0, deadline_seconds=30, what="a job runs"
                )
                time.sleep(chance.uniform(0, LATEST_SECONDS))  # the moment is what is tried
                told = chance.sample(workers.names, 1 + number % 2)
                workers.stop(told)
                if len(told) == len(workers.names):
                    check_nothing_was_acknowledged_too_early(cluster, load)
            workers.stop(workers.running)
        with Workers(cluster) as workers:
            workers.start_missing()
            for job_id in load.posted:
                api.wait_for_job(job_id, deadline_seconds=240)
            check_ends(cluster, load, s3_client)
            workers.stop(workers.running)
        attempts = [len(job["attempts"]) for job in load.mongo.all_by_id().values()]
        print(f"{ROUNDS} rounds, {len(attempts)} jobs, {sum(attempts) - len(attempts)} given back")


def check_nothing_was_acknowledged_too_early(cluster: Cluster, load: Load) -> None:
    """No worker runs: what waits for its message, or was given back, has one in the queue."""
    needed = load.mongo.waiting_for_a_message() | load.mongo.released()
    assert needed - jobs_in_queue(cluster) == set()
    assert load.mongo.running_count() == 0


class Workers:
    """Two workers, started again whenever one has ended."""

    names = ("left", "right")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: dict[str, tuple[FetcherProcess, Api, ExitStack]] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_error: object) -> None:
        for _, _, closing in self._running.values():
            closing.close()

    @property
    def running(self) -> list[str]:
        return list(self._running)

    def start_missing(self) -> None:
        for name in self.names:
            if name not in self._running:
                closing = ExitStack()
                process, api = closing.enter_context(self._cluster.worker(name, waits=False))
                self._running[name] = (process, api, closing)
        for process, api, _ in self._running.values():
            url = f"http://127.0.0.1:{api.port}/health"
            process.wait_until_answers(url, deadline_seconds=START_SECONDS)

    def stop(self, names: list[str]) -> None:
        """All are told before one is waited for; each ends in time, and well."""
        stopping = [self._running.pop(name) for name in names]
        for process, _, _ in stopping:
            process.send(signal.SIGTERM)
        deadline_seconds = DRAIN_SECONDS + JOB_WAIT_SECONDS + GIVING_BACK_SECONDS
        for process, _, closing in stopping:
            with closing:
                assert process.wait_exit(deadline_seconds=deadline_seconds) == 0
