"""kill -9 just before and just after the terminal write: the winner's object is left, or none."""

import json
import signal
from pathlib import Path
from uuid import UUID

import pytest
from mypy_boto3_s3 import S3Client

from fetcher.consumer import open_result, verify_event
from fetcher.domain.ids import JobId
from fetcher.domain.job_transitions import MAX_TAKEOVERS
from fetcher.domain.result_keys import attempt_keys
from tests.e2e.cluster import Cluster, postgres_connection
from tests.faults.passing import STEPPING
from tests.faults.steps import BY_NAME, FOLDER_VARIABLE, Armory, How
from tests.faults.test_kills import object_keys
from tests.scale import IS_NIGHTLY
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

FIELDS = {"sales_db": {"orders": ["id"]}}
BEFORE, AFTER = BY_NAME["end-judged"], BY_NAME["end-stored"]
DEATH_SECONDS = 60.0


def armed(cluster: Cluster, folder: Path) -> Armory:
    armory = Armory(folder)
    cluster.changes.update(
        {"JOB_LEASE_SEC": "3", "JOB_LEASE_RENEW_SEC": "0.5", FOLDER_VARIABLE: str(folder)}
    )
    return armory


@pytest.mark.parametrize(
    "deaths", range(1, MAX_TAKEOVERS + 2) if IS_NIGHTLY else (1, MAX_TAKEOVERS + 1)
)
def test_whichever_attempts_die_with_their_object_stored_one_object_is_left_or_none(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, tmp_path: Path, deaths: int
) -> None:
    armory = armed(cluster, tmp_path)
    with cluster.manager() as (_, api):
        assert api.connect(postgres_connection(shop)).status == 201
        job_id = api.post_job(FIELDS).body["jobId"]
        keys = attempt_keys("", JobId(UUID(job_id)), deaths + 1)
        for attempt in range(1, deaths + 1):
            armory.arm(BEFORE, How.KILL)
            with cluster.worker(f"dying-{attempt}", module=STEPPING, waits=False) as (worker, _):
                assert worker.wait_exit(deadline_seconds=DEATH_SECONDS) == -signal.SIGKILL
            # It died with its object whole and visible, and nothing was recorded. Those of the
            # attempts before it may be deleted already.
            stored_keys = object_keys(cluster, s3_client)
            assert keys[attempt - 1] in stored_keys
            assert set(stored_keys) <= set(keys[:attempt])
            job = api.job(job_id)
            assert (job["status"], job.get("resultPath")) == ("processing", None)
        with cluster.worker("last"):
            job = api.wait_for_job(job_id)
            [event] = cluster.events(1)
            has_winner = deaths <= MAX_TAKEOVERS
            left = [keys[-1]] if has_winner else []
            eventually_sync(
                lambda: object_keys(cluster, s3_client) == left,
                deadline_seconds=20,
                what=f"{left} alone is left",
            )
        said = verify_event(
            event.headers,
            event.body,
            cluster.exchange,
            event.routing_key,
            key=cluster.keys.external_hmac,
        )
        assert said.status == job["status"] == ("completed" if has_winner else "failed")
        assert said.job_id == job_id
        if said.result is None:
            assert said.error is not None
            assert said.error["code"] == "worker_lost"
        else:
            assert said.result.path == job["resultPath"] == keys[-1]
            stored = s3_client.get_object(Bucket=cluster.bucket, Key=keys[-1])["Body"].read()
            with open_result(
                stored,
                storage_key=cluster.keys.storage,
                hmac_key=cluster.keys.external_hmac,
                expected_hmac=said.result.hmac,
                expected_size=said.result.size_bytes,
            ) as opened:
                assert len(json.loads(opened.read())["sales_db"]["orders"]) == 1000


def test_a_winner_that_dies_once_it_is_recorded_leaves_its_object_and_its_event_to_others(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, tmp_path: Path
) -> None:
    armory = armed(cluster, tmp_path)
    with cluster.manager() as (_, api):
        assert api.connect(postgres_connection(shop)).status == 201
        job_id = api.post_job(FIELDS).body["jobId"]
        for name, step in {"loser": BEFORE, "winner": AFTER}.items():
            armory.arm(step, How.KILL)
            with cluster.worker(name, module=STEPPING, waits=False) as (worker, _):
                assert worker.wait_exit(deadline_seconds=DEATH_SECONDS) == -signal.SIGKILL
        job = api.job(job_id)
        winners_key = job["resultPath"]
        assert job["status"] == "completed"
        assert winners_key != f"external-data/{job_id}.json"
        with cluster.worker("last"):
            eventually_sync(
                lambda: object_keys(cluster, s3_client) == [winners_key],
                deadline_seconds=30,
                what="the loser's object is deleted",
            )
            assert {event.header("ce-id") for event in cluster.events(1)} == {
                f"fetcher.job.completed.{job_id}"
            }
