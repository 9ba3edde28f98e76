"""A manager and a worker whose record store, bucket and broker fail one message at a time."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pymongo
from bson import Binary
from mypy_boto3_s3 import S3Client

from fetcher.consumer import open_result, verify_event
from tests.e2e import broker
from tests.e2e.cluster import Answer, Api, Cluster, postgres_connection
from tests.faults.amqp_proxy import AmqpFaultProxy
from tests.faults.mongo_proxy import MongoWriteProxy
from tests.faults.proxy_thread import InItsThread, in_a_thread
from tests.faults.s3_proxy import S3FaultProxy
from tests.faults.sigterm_load import make_sources, stored_keys
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

E = TypeVar("E")

JOBS: Final = 5
LEASE_SECONDS: Final = 12
REQUESTS: Final = 10
ENDING_SECONDS: Final = LEASE_SECONDS + 30 + 10.0
"""Lease + 30 s until somebody has the job, and its own time."""
MANAGER: Final = "manager"
WORKER: Final = "worker"
PROCESSES: Final = (MANAGER, WORKER)
BIG_ROWS: Final = 2_000
QUICK: Final = {"orders": ["id"]}
SLOW: Final = {"slow_orders": ["id"]}
"""Takes 2 s, so that the lease is renewed."""
WIDE: Final = {"wide": ["id", "note"]}
"""An upload of three parts."""
BREAKING: Final = {"breaking": ["id", "note", "gate"]}
"""Fails in the last of its parts."""


@dataclass(frozen=True, slots=True)
class Rig:
    cluster: Cluster
    api: Api
    worker: Api
    jobs: "pymongo.collection.Collection[dict[str, Any]]"
    mongo: Mapping[str, InItsThread[MongoWriteProxy]]
    """Of each process."""
    s3: InItsThread[S3FaultProxy]
    s3_client: S3Client
    amqp: Mapping[str, InItsThread[AmqpFaultProxy]]
    """Of each process."""
    said: dict[str, list[broker.Message]] = field(default_factory=dict)
    """Every event that came, by its job."""

    def post(self, fields: object, tag: str) -> list[Answer]:
        """Answers up to one that accepts it: a caller repeats what was answered with 5xx."""
        answers: list[Answer] = []
        for _ in range(REQUESTS):
            answers.append(self.api.post_job({"sales_db": fields}, case=tag))
            if answers[-1].status < 500:
                break
        return answers

    def ended(self, job_id: str, *, deadline_seconds: float = ENDING_SECONDS) -> dict[str, Any]:
        """The record once it is terminal, its event is told, and it says so; nothing is left of it
        but one event id and, where it completed, one object."""
        eventually_sync(
            lambda: self._is_over(job_id),
            deadline_seconds=deadline_seconds,
            what=f"job {job_id} ends and is told",
        )
        [job] = self.jobs.find({"_id": binary_id(job_id)})
        kind = "completed" if job["status"] == "completed" else "failed"
        ids = {event.header("ce-id") for event in self.said[job_id]}
        assert ids == {f"fetcher.job.{kind}.{job_id}"}
        left = [job["result_path"]] if kind == "completed" else []
        eventually_sync(
            lambda: (self.objects(job_id), self._uploads(job_id)) == (left, []),
            deadline_seconds=deadline_seconds,
            what=f"of job {job_id} nothing is left but {left}",
        )
        return job

    def _is_over(self, job_id: str) -> bool:
        self.hear()
        is_pending = {"_id": binary_id(job_id), "metadata.terminalEventPending": True}
        return job_id in self.said and self.jobs.count_documents(is_pending) == 0

    def hear(self) -> None:
        """Take the events that came."""
        for event in broker.read_all(self.cluster.amqp_url, self.cluster.event_queue):
            self.said.setdefault(json.loads(event.body)["jobId"], []).append(event)

    def opened(self, job_id: str) -> Any:
        """What a consumer makes of the event and the object."""
        event = self.said[job_id][-1]
        keys = self.cluster.keys
        told = verify_event(
            event.headers,
            event.body,
            self.cluster.exchange,
            event.routing_key,
            key=keys.external_hmac,
        )
        assert told.result is not None
        found = self.s3_client.get_object(Bucket=self.cluster.bucket, Key=told.result.path)
        with open_result(
            found["Body"].read(),
            storage_key=keys.storage,
            hmac_key=keys.external_hmac,
            expected_hmac=told.result.hmac,
            expected_size=told.result.size_bytes,
        ) as document:
            return json.loads(document.read())["sales_db"]

    def objects(self, job_id: str) -> list[str]:
        keys = stored_keys(self.s3_client, self.cluster.bucket)
        return [key for key in keys if job_id in key]

    def _uploads(self, job_id: str) -> list[str]:
        listed = self.s3_client.list_multipart_uploads(Bucket=self.cluster.bucket)
        return [upload["Key"] for upload in listed.get("Uploads", []) if job_id in upload["Key"]]


@contextmanager
def rig(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, *, repeats: bool, user: str = ""
) -> Iterator[Rig]:
    """Each process reaches MongoDB and the broker by proxies of its own, both reach S3 by another.

    ``repeats`` is whether the driver of MongoDB may send a write again (``retryWrites``). They are
    the broker's ``user``, where one is given, whose password is the same.
    """
    make_wide_sources(shop)
    mongo, s3 = urlsplit(cluster.mongo_uri), urlsplit(cluster.s3.endpoint)
    cluster.changes.update(
        DATASOURCE_INCLUDE_VIEWS="true",
        JOB_LEASE_SEC=str(LEASE_SECONDS),
        JOB_LEASE_RENEW_SEC="1",
        JOB_LEASE_MARGIN_SEC="2",
    )

    if user:
        cluster.changes.update(RABBITMQ_DEFAULT_USER=user, RABBITMQ_DEFAULT_PASS=user)

    def mongo_proxy() -> MongoWriteProxy:
        host, port = mongo.hostname or "127.0.0.1", mongo.port or 27017
        return MongoWriteProxy(host, port, database=cluster.mongo_name)

    def s3_proxy() -> S3FaultProxy:
        return S3FaultProxy(s3.hostname or "127.0.0.1", s3.port or 80)

    def amqp_proxy() -> AmqpFaultProxy:
        at = broker.address_of(cluster.amqp_url)
        return AmqpFaultProxy(
            at.host, at.port, work_queue=cluster.work_queue, events_exchange=cluster.exchange
        )

    with ExitStack() as stack:
        mongos = {name: stack.enter_context(in_a_thread(mongo_proxy)) for name in PROCESSES}
        amqps = {name: stack.enter_context(in_a_thread(amqp_proxy)) for name in PROCESSES}
        store = stack.enter_context(in_a_thread(s3_proxy))
        client = stack.enter_context(pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri))

        def seen_by(name: str) -> Cluster:
            member = f"mongodb://127.0.0.1:{mongos[name].do(lambda it: it.port)}/"
            changes = {
                "MONGO_URI": f"{member}?replicaSet=fetcher-t&retryWrites={str(repeats).lower()}",
                "OBJECT_STORAGE_ENDPOINT": f"http://127.0.0.1:{store.do(lambda it: it.port)}",
                "RABBITMQ_HOST": "127.0.0.1",
                "RABBITMQ_PORT_AMQP": str(amqps[name].do(lambda it: it.port)),
            }
            return replace(cluster, changes={**cluster.changes, **changes})

        _, api = stack.enter_context(seen_by(MANAGER).manager())
        _, worker = stack.enter_context(seen_by(WORKER).worker())
        assert api.connect(postgres_connection(shop)).status == 201
        yield Rig(
            cluster=cluster,
            api=api,
            worker=worker,
            jobs=client[cluster.mongo_name]["job"],
            mongo=mongos,
            s3=store,
            s3_client=s3_client,
            amqp=amqps,
        )


def binary_id(job_id: str) -> Binary:
    """As records have it: of subtype 0."""
    return Binary(UUID(job_id).bytes, 0)


def first_met(run: Callable[[int], E | None], *, what: str) -> E:
    """What became of the first job that met the fault: of another the other process may have done
    what it waits for."""
    for number in range(JOBS):
        ending = run(number)
        if ending is not None:
            return ending
    message = f"{what} was not met by any of {JOBS} jobs"
    raise AssertionError(message)


def make_wide_sources(shop: SqlAddress) -> None:
    """Beside those of the load, ``wide`` of three parts, and ``breaking``: it fails in the last."""
    make_sources(shop)
    row = "n AS id, repeat(md5(n::text), 256) AS note"
    rows = f"FROM generate_series(1, {BIG_ROWS}) AS n"
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(f"CREATE VIEW wide AS SELECT {row} {rows}")
        database.execute(
            f"CREATE VIEW breaking AS SELECT {row}, 1 / ({BIG_ROWS - 50} - n) AS gate {rows}"
        )
