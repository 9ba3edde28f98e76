"""Jobs that never stop coming, and what is left when they all have ended."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
import pymongo
from aiormq import Channel
from mypy_boto3_s3 import S3Client

from fetcher.adapters.mongo.document_fields import id_filter
from tests.e2e import broker
from tests.e2e.cluster import Api, Cluster
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

MOST_WAITING: Final = 12
"""More would only wait: the worker has five places."""
KINDS: Final = ("orders", "slow_orders", "big_orders")


def make_sources(shop: SqlAddress) -> None:
    """Beside the quick table: rows that take 2 s, and rows that make an upload of three parts."""
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(
            "CREATE VIEW slow_orders AS SELECT id, pg_sleep(0.1) IS NULL AS late FROM orders"
            " WHERE id % 50 = 0"
        )
        database.execute(
            "CREATE VIEW big_orders AS SELECT n AS id, repeat(md5(n::text), 256) AS note,"
            " CASE WHEN n % 200 = 0 THEN pg_sleep(0.1) IS NULL END AS late"
            " FROM generate_series(1, 2000) AS n"
        )


@dataclass
class Load:
    """Posts jobs of every kind, as long as few enough wait, until it is told to stop."""

    api: Api
    mongo: "Records"
    posted: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        thread = threading.Thread(target=self._post_all, name="load")
        thread.start()
        try:
            yield
        finally:
            self._enough.set()
            thread.join()
        assert self.failures == []

    def _post_all(self) -> None:
        try:
            while not self._enough.wait(0.2):
                if self.mongo.active_count() < MOST_WAITING:
                    self._post()
        except BaseException as failure:  # noqa: BLE001 - the test's own thread shows it
            self.failures.append(failure)

    def _post(self) -> None:
        number = len(self.posted)
        fields = {"sales_db": {KINDS[number % len(KINDS)]: ["id"]}}
        if number % len(KINDS) == 2:
            fields = {"sales_db": {"big_orders": ["id", "note", "late"]}}
        answer = self.api.post_job(fields, number=number)
        assert answer.status == 202, answer.body
        self.posted.append(answer.body["jobId"])


class Records:
    """The job records themselves."""

    def __init__(self, client: "pymongo.MongoClient[dict[str, Any]]", name: str) -> None:
        self._jobs = client[name]["job"]

    def active_count(self) -> int:
        return self._jobs.count_documents({"status": {"$in": ["pending", "processing"]}})

    def completed_count(self) -> int:
        return self._jobs.count_documents({"status": "completed"})

    def active_ids(self) -> set[str]:
        found = self._jobs.find({"status": {"$in": ["pending", "processing"]}}, ["_id"])
        return {str(UUID(bytes=bytes(document["_id"]))) for document in found}

    def running_count(self) -> int:
        return self._jobs.count_documents({"status": "processing"})

    def waiting_for_a_message(self) -> set[str]:
        """Jobs that only their message brings on: acknowledged, they would be stuck."""
        found = self._jobs.find({"status": "pending", "dispatched_at": {"$ne": None}}, ["_id"])
        return {str(UUID(bytes=bytes(document["_id"]))) for document in found}

    def released(self) -> set[str]:
        """Jobs that somebody worked at and gave back."""
        found = self._jobs.find({"status": "pending", "attempt": {"$gt": 0}}, ["_id"])
        return {str(UUID(bytes=bytes(document["_id"]))) for document in found}

    def job(self, job_id: str) -> Mapping[str, Any]:
        found = self._jobs.find_one(id_filter(UUID(job_id)))
        assert found is not None, f"there is no job {job_id}"
        return found

    def all_by_id(self) -> Mapping[str, Mapping[str, Any]]:
        return {str(UUID(bytes=bytes(found["_id"]))): found for found in self._jobs.find()}


def jobs_in_queue(cluster: Cluster) -> set[str]:
    """Whose messages lie in the work queue; they are put back."""

    async def look(channel: Channel) -> set[str]:
        found = set()
        while (got := await channel.basic_get(cluster.work_queue)).delivery.name != (
            "Basic.GetEmpty"
        ):
            found.add(json.loads(got.body)["jobId"])
        return found  # nothing was acknowledged: the channel's end puts all of it back

    return broker.on_channel(cluster.amqp_url, look)


def stored_keys(s3_client: S3Client, bucket: str) -> list[str]:
    pages = s3_client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))


def check_ends(cluster: Cluster, load: Load, s3_client: S3Client) -> None:
    """Every job completed, one visible object each, one event id each, nothing left over."""
    jobs = load.mongo.all_by_id()
    assert set(jobs) == set(load.posted)
    assert {job["status"] for job in jobs.values()} == {"completed"}
    paths = {job_id: job["result_path"] for job_id, job in jobs.items()}
    eventually_sync(
        lambda: stored_keys(s3_client, cluster.bucket) == sorted(paths.values()),
        deadline_seconds=20,
        what="each job has its winner's object alone",
    )
    assert s3_client.list_multipart_uploads(Bucket=cluster.bucket).get("Uploads", []) == []
    said: dict[str, set[tuple[str, str]]] = {}
    for event in cluster.events(len(jobs)):
        body = json.loads(event.body)
        said.setdefault(body["jobId"], set()).add((event.header("ce-id"), body["result"]["path"]))
    assert said == {
        job_id: {(f"fetcher.job.completed.{job_id}", path)} for job_id, path in paths.items()
    }
    eventually_sync(
        lambda: jobs_in_queue(cluster) == set(), deadline_seconds=20, what="no message is left"
    )
