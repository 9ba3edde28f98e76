"""Processes that are killed, or told to stop, in the middle of a job."""

import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mypy_boto3_s3 import S3Client

from tests.e2e.cluster import Cluster, embedded, opened, postgres_connection
from tests.servers.addresses import SqlAddress


def test_a_killed_workers_job_is_finished_by_another(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client
) -> None:
    """kill -9 while the source is being read; one object, one terminal state, one event id."""
    with (
        cluster.manager() as (_, api),
        psycopg.connect(shop.conninfo) as locker,
    ):
        assert api.connect(postgres_connection(shop)).status == 201
        with cluster.worker("first") as (first, _):
            locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            job_id = api.post_job({"sales_db": {"orders": ["id"]}}).body["jobId"]
            api.wait_for_status(job_id, "processing")
            repeat = api.post_job({"sales_db": {"orders": ["id"]}})
            assert (repeat.status, repeat.body["jobId"]) == (200, job_id)
            first.send(signal.SIGKILL)
            assert first.wait_exit(deadline_seconds=5) == -signal.SIGKILL
        locker.rollback()
        with cluster.worker("second"):
            job = api.wait_for_job(job_id)
            assert job["status"] == "completed"
            assert {event.header("ce-id") for event in cluster.events(1)} == {
                f"fetcher.job.completed.{job_id}"
            }
        assert object_keys(cluster, s3_client) == [job["resultPath"]]


def object_keys(cluster: Cluster, s3_client: S3Client) -> list[str]:
    listing = s3_client.list_objects_v2(Bucket=cluster.bucket).get("Contents", [])
    assert s3_client.list_multipart_uploads(Bucket=cluster.bucket).get("Uploads", []) == []
    return [entry["Key"] for entry in listing]


def test_a_worker_that_is_told_to_stop_gives_its_job_back(
    cluster: Cluster, shop: SqlAddress
) -> None:
    """The wait for jobs is over: the job is pending again and its message is put back."""
    cluster.changes["SHUTDOWN_JOB_WAIT_SEC"] = "0.5"
    with (
        cluster.manager() as (_, api),
        psycopg.connect(shop.conninfo) as locker,
    ):
        assert api.connect(postgres_connection(shop)).status == 201
        with cluster.worker("first") as (first, _):
            locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            job_id = api.post_job({"sales_db": {"orders": ["id"]}}).body["jobId"]
            api.wait_for_status(job_id, "processing")
            first.send(signal.SIGTERM)
            assert first.wait_exit(deadline_seconds=30) == 0
        assert api.job(job_id)["status"] == "pending"
        locker.rollback()
        with cluster.worker("second"):
            assert api.wait_for_job(job_id)["status"] == "completed"


@pytest.mark.parametrize("point", ["running", "before_dispatch"])
def test_a_killed_process_finishes_its_jobs_after_the_restart(
    tmp_path: Path, postgres_database: Any, point: str
) -> None:
    """kill -9, then the same folder again: nothing is lost, nothing is stuck."""
    address: SqlAddress = postgres_database()
    with psycopg.connect(address.conninfo) as locker:
        locker.execute("CREATE TABLE orders (id int)")
        locker.execute("INSERT INTO orders VALUES (1), (2)")
        locker.commit()
        with embedded(tmp_path, RABBITMQ_NUMBERS_OF_WORKERS="1") as (process, api):
            api.connect(
                {
                    "configName": "sales_db",
                    "type": "POSTGRESQL",
                    "host": address.host,
                    "port": address.port,
                    "databaseName": address.database,
                    "userName": address.user,
                    "password": address.password or "none",
                }
            )
            locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            jobs = [
                api.post_job({"sales_db": {"orders": ["id"]}}, n=n).body["jobId"] for n in range(3)
            ]
            if point == "running":
                api.wait_for_status(jobs[0], "processing")
            process.send(signal.SIGKILL)
            process.wait_exit(deadline_seconds=5)
        locker.rollback()
    with embedded(tmp_path, name="again") as (process, api):
        for job_id in jobs:
            assert api.wait_for_job(job_id)["status"] == "completed"
            assert opened(tmp_path, job_id) == {"sales_db": {"orders": [{"id": 1}, {"id": 2}]}}
