"""Clocks of real processes are set by an hour and a day, both ways, while jobs run (decision 047).

Whose clock: a manager's, a worker's, that of the embedded default. MongoDB's own goes on, as other
machines' do; the record store's clock is set in ``tests/simulation``.
"""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import psycopg
import pymongo
import pytest
from mypy_boto3_s3 import S3Client

from tests.e2e.cluster import Api, Cluster, embedded, opened, postgres_connection
from tests.faults.matrix_outcome import look
from tests.faults.set_clock import SetClock, settable_clock
from tests.faults.sigterm_load import Records
from tests.scale import IS_NIGHTLY
from tests.servers.addresses import SqlAddress
from tests.servers.auth_double import AUTHORIZED, auth_double
from tests.servers.waiting import eventually_sync
from tests.unit.adapters.auth.keys import an_ec_key

HOUR: Final = 3600
DAY: Final = 24 * HOUR
JUMPS: Final = (HOUR, -HOUR, DAY, -DAY) if IS_NIGHTLY else (DAY, -DAY)
SLOW: Final = {"sales_db": {"slow": ["id", "late"]}}
QUICK: Final = {"sales_db": {"orders": ["id"]}}
TIMES: Final = {
    "JOB_LEASE_SEC": "10",
    "JOB_LEASE_RENEW_SEC": "1",
    "JOB_LEASE_MARGIN_SEC": "2",
    "JOB_REAP_SEC": "0.5",
    "JOB_DISPATCH_SWEEP_SEC": "0.5",
    "OUTBOX_REPAIR_SEC": "1",
    "DATASOURCE_INCLUDE_VIEWS": "true",
    # what is a day old is deleted, looked for all the time
    "RESULT_RETENTION_DAYS": "1",
    "JOB_RETENTION_DAYS": "1",
    "RETENTION_SWEEP_SEC": "0.2",
}
in_make_faults = pytest.mark.skipif(not IS_NIGHTLY, reason="a part of `make faults`")


@pytest.fixture
def sources(shop: SqlAddress) -> SqlAddress:
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(
            "CREATE VIEW slow AS SELECT n AS id, pg_sleep(0.1) IS NULL AS late"
            " FROM generate_series(1, 15) AS n"
        )
    return shop


class Jumping:
    """Jobs that run while clocks are set; what becomes of them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.posted: dict[str, Mapping[str, Any]] = {}

    def amid_a_job(self, jump_seconds: int, clocks: list[SetClock]) -> None:
        """One job runs when the clocks are set, one is asked for then, and both end; so when they
        are set right again."""
        for ahead_seconds in (jump_seconds, 0):
            running = self._post(SLOW)
            self._api.wait_for_status(running, "processing")
            for clock in clocks:
                clock.set(ahead_seconds)
            later = self._post(QUICK)
            for job_id in (running, later):
                job = self._api.wait_for_job(job_id)
                assert (job["status"], len(job["attempts"])) == ("completed", 1), job
                self.posted[job_id] = job

    def _post(self, fields: object) -> str:
        answer = self._api.post_job(fields, n=len(self.posted), at=time.monotonic_ns())
        assert answer.status == 202, answer.body
        return str(answer.body["jobId"])

    def check_kept(self) -> None:
        """Nothing has had its day."""
        for job_id, job in self.posted.items():
            found = self._api.job(job_id)
            assert (found["status"], found["resultPath"]) == ("completed", job["resultPath"])
            assert "resultDeletedAt" not in found


def test_the_embedded_default_loses_nothing_by_a_clock_that_is_set(
    tmp_path: Path, sources: SqlAddress
) -> None:
    clock = settable_clock(tmp_path, "all")
    with embedded(tmp_path, **TIMES, **clock.variables) as (process, api):
        assert api.connect(postgres_connection(sources)).status == 201
        jobs = Jumping(api)
        for jump in JUMPS:
            jobs.amid_a_job(jump, [clock])
            jobs.check_kept()
        log = process.log()
    assert log.count('"msg":"clock_was_set"') == 2 * len(JUMPS)
    assert "lease_ran_out" not in log
    for job_id in jobs.posted:
        assert len(opened(tmp_path, job_id)["sales_db"]) == 1
    lines = (tmp_path / "fetcher-data" / "events.jsonl").read_text().splitlines()
    told = [json.loads(line)["headers"]["ce-id"] for line in lines]
    assert sorted(told) == sorted(f"fetcher.job.completed.{job_id}" for job_id in jobs.posted)


@in_make_faults
def test_a_manager_and_a_worker_whose_clocks_differ_lose_nothing(
    cluster: Cluster, sources: SqlAddress, s3_client: S3Client, tmp_path: Path
) -> None:
    manager_clock, worker_clock = settable_clock(tmp_path, "m"), settable_clock(tmp_path, "w")
    cluster.changes.update(TIMES)
    with (
        pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri) as client,
        ExitStack() as processes,
    ):
        cluster.changes.update(manager_clock.variables)
        _, api = processes.enter_context(cluster.manager())
        cluster.changes.update(worker_clock.variables)
        worker, _ = processes.enter_context(cluster.worker())
        assert api.connect(postgres_connection(sources)).status == 201
        jobs = Jumping(api)
        for clocks in ([manager_clock], [worker_clock], [manager_clock, worker_clock]):
            for jump in JUMPS:
                jobs.amid_a_job(jump, clocks)
                jobs.check_kept()
        outcome = look(
            cluster,
            Records(client, cluster.mongo_name).all_by_id(),
            jobs.posted,
            s3_client,
        )
        log = worker.log()
    assert outcome.completed == outcome.event_ids == outcome.jobs == len(jobs.posted)
    assert outcome.lost == outcome.wrong_objects == outcome.events_missing == set()
    assert "delivery_rejected" not in log
    assert "lease_ran_out" not in log


@in_make_faults
def test_a_token_counts_by_the_clock_as_it_is(tmp_path: Path) -> None:
    """Its end and its beginning, with a minute's leeway; nobody is shut out once it is right."""
    key, clock = an_ec_key(), settable_clock(tmp_path, "all")
    now = int(time.time())
    token = key.token({"sub": "acme/x", "nbf": now - HOUR // 2, "exp": now + HOUR // 2}, kid="k")
    with auth_double(tmp_path) as service:
        service.answers(AUTHORIZED)
        keys = json.dumps({"keys": [key.published("k")]})
        service.answers({"status": 200, "body": keys}, path="/keys")
        settings = {
            "PLUGIN_AUTH_ENABLED": "true",
            "PLUGIN_AUTH_ADDRESS": service.address,
            "PLUGIN_AUTH_JWKS_URL": f"{service.address}/keys",
        }
        with embedded(tmp_path, **settings, **clock.variables) as (_, api):
            caller = Api(api.port, token)

            def status() -> int:
                return caller.call("GET", "/v1/management/connections").status

            for jump in JUMPS:
                assert status() == 200
                clock.set(jump)
                assert refused(caller)
                clock.set(0)
                eventually_sync(lambda: status() == 200, deadline_seconds=10)


def refused(caller: Api) -> bool:
    """The text of a refusal is no JSON."""
    try:
        return caller.call("GET", "/v1/management/connections").status == 401
    except json.JSONDecodeError:
        return True
