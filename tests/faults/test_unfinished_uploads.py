"""Whatever ends a job in the middle of its upload, the bucket holds no part of it afterwards."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pymongo
import pytest
from bson import Binary
from mypy_boto3_s3 import S3Client

from tests.e2e.cluster import Api, Cluster, postgres_connection
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

GATE = 7
LONG_LEASE = {"JOB_LEASE_SEC": "60", "JOB_LEASE_RENEW_SEC": "15", "JOB_LEASE_MARGIN_SEC": "10"}
FIELDS = ["id", "note", "gate"]


@pytest.fixture
def big_shop(shop: SqlAddress) -> SqlAddress:
    """``gated`` waits after 25 MB for the gate to open; ``failing`` fails there."""
    row = "n AS id, rpad(md5(n::text), 1000, 'x') AS note"
    rows = "FROM generate_series(1, 26000) AS n"
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(
            f"CREATE VIEW gated AS SELECT {row}, CASE WHEN n = 25000"
            f" THEN pg_advisory_xact_lock_shared({GATE}) IS NULL END AS gate {rows}"
        )
        database.execute(f"CREATE VIEW failing AS SELECT {row}, 1 / (25000 - n) AS gate {rows}")
    return shop


@contextmanager
def closed_gate(shop: SqlAddress) -> Iterator[None]:
    with psycopg.connect(shop.conninfo, autocommit=True) as keeper:
        keeper.execute("SELECT pg_advisory_lock(%s)", [GATE])
        yield


def begun_upload(cluster: Cluster, s3_client: S3Client, api: Api, **metadata: object) -> str:
    """A job whose upload has two parts and waits for more rows."""
    job_id: str = api.post_job({"sales_db": {"gated": FIELDS}}, **metadata).body["jobId"]

    def has_parts() -> bool:
        return any(
            len(
                s3_client.list_parts(
                    Bucket=cluster.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                ).get("Parts", [])
            )
            >= 2
            for upload in uploads(cluster, s3_client)
            if job_id in upload["Key"]
        )

    eventually_sync(has_parts, deadline_seconds=60, what="two parts have arrived")
    return job_id


def uploads(cluster: Cluster, s3_client: S3Client) -> list[Any]:
    return list(s3_client.list_multipart_uploads(Bucket=cluster.bucket).get("Uploads", []))


def objects(cluster: Cluster, s3_client: S3Client) -> list[str]:
    found = s3_client.list_objects_v2(Bucket=cluster.bucket).get("Contents", [])
    return [entry["Key"] for entry in found]


def wait_until_nothing_is_left(cluster: Cluster, s3_client: S3Client) -> None:
    eventually_sync(
        lambda: (uploads(cluster, s3_client), objects(cluster, s3_client)) == ([], []),
        deadline_seconds=30,
        what="no part and no object is left",
    )


def test_a_job_that_fails_is_cancelled_or_loses_its_lease_in_mid_stream_leaves_no_upload(
    cluster: Cluster, big_shop: SqlAddress, s3_client: S3Client
) -> None:
    cluster.changes.update(LONG_LEASE, DATASOURCE_INCLUDE_VIEWS="true")
    with cluster.manager() as (_, api), cluster.worker() as (worker, _), closed_gate(big_shop):
        assert api.connect(postgres_connection(big_shop)).status == 201

        failing = api.post_job({"sales_db": {"failing": FIELDS}}).body["jobId"]
        assert api.wait_for_job(failing)["status"] == "failed"
        assert uploads(cluster, s3_client) == []

        cancelled = begun_upload(cluster, s3_client, api, n=1)
        assert api.call("POST", f"/v1/fetcher/{cancelled}/cancel").status == 202
        assert api.wait_for_job(cancelled)["status"] == "cancelled"
        assert uploads(cluster, s3_client) == []

        lost = begun_upload(cluster, s3_client, api, n=2)
        somebody_else_claims(cluster, lost)
        worker.wait_until(lambda it: '"loss":"superseded"' in it.log(), deadline_seconds=30)
        wait_until_nothing_is_left(cluster, s3_client)


def somebody_else_claims(cluster: Cluster, job_id: str) -> None:
    with pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri) as client:
        changed = client[cluster.mongo_name]["job"].update_one(
            {"_id": Binary(UUID(job_id).bytes, 0), "status": "processing"},
            {"$set": {"lease_token": Binary(bytes(16), 0)}, "$inc": {"attempt": 1}},
        )
    assert changed.modified_count == 1


def test_a_job_that_is_given_back_on_sigterm_leaves_no_upload(
    cluster: Cluster, big_shop: SqlAddress, s3_client: S3Client
) -> None:
    cluster.changes.update(LONG_LEASE, DATASOURCE_INCLUDE_VIEWS="true", SHUTDOWN_JOB_WAIT_SEC="0.5")
    with cluster.manager() as (_, api):
        assert api.connect(postgres_connection(big_shop)).status == 201
        with cluster.worker() as (worker, _), closed_gate(big_shop):
            job_id = begun_upload(cluster, s3_client, api)
            worker.send(signal.SIGTERM)
            assert worker.wait_exit(deadline_seconds=40) == 0
        assert api.job(job_id)["status"] == "pending"
        assert (uploads(cluster, s3_client), objects(cluster, s3_client)) == ([], [])


def test_the_parts_of_a_killed_worker_are_removed_by_another(
    cluster: Cluster, big_shop: SqlAddress, s3_client: S3Client
) -> None:
    """One job is taken over and completes, one is ended by the reaper as it was to be cancelled."""
    cluster.changes["DATASOURCE_INCLUDE_VIEWS"] = "true"
    with cluster.manager() as (_, api):
        assert api.connect(postgres_connection(big_shop)).status == 201
        with cluster.worker("killed") as (killed, _), closed_gate(big_shop):
            taken_over = begun_upload(cluster, s3_client, api, n=1)
            ended = begun_upload(cluster, s3_client, api, n=2)
            killed.send(signal.SIGKILL)
            assert killed.wait_exit(deadline_seconds=10) == -signal.SIGKILL
        assert len(uploads(cluster, s3_client)) == 2
        assert api.call("POST", f"/v1/fetcher/{ended}/cancel").status == 202
        with cluster.worker("other"):
            job = api.wait_for_job(taken_over)
            assert job["resultPath"] == f"external-data/{taken_over}.2.json"
            assert api.wait_for_job(ended)["status"] == "cancelled"
            eventually_sync(
                lambda: uploads(cluster, s3_client) == [],
                deadline_seconds=30,
                what="the reaper has removed both uploads",
            )
        assert objects(cluster, s3_client) == [job["resultPath"]]
