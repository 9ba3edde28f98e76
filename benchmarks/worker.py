"""What a job costs a worker apart from its rows: jobs whose table is empty, on real servers.

``python -m benchmarks.worker [--rounds N] [--jobs N]``. A worker with 5 places takes 200 messages
from RabbitMQ at once; a round ends with its last job's event. Records lie in MongoDB and S3;
the source is an SQLite file with a table without rows; the jobs lie ready. Beside it, in turns, a
bare process of plain asyncio with as many places, which makes for each message the calls alone that
nobody can do without (:mod:`benchmarks.worker_peer`), on records and indexes of the same kind.

``worker.empty_jobs``: jobs a second of both; CPU time a job of each process and of the servers, as
far as they run here (what others ask of them meanwhile is in it); how many cores each kept busy;
and what ``binds``: ``all cores`` where the machine was never idle, else whoever was busiest, unless
even that one had half a core to spare: then ``waiting``, for answers.
``worker.empty_job.steps``: wall and CPU milliseconds of each step, while jobs come one after
another. ``sources``: the connections and their breakers; ``plan``: the source is opened and its
schema looked at; ``check``: the lease, before the object becomes visible; the others do what they
are called. Servers are those of ``FETCHER_TEST_*``.
"""

import argparse
import json
import os
import secrets
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import pymongo

from benchmarks.cpu_time import cpu_seconds, idle_seconds, listener
from benchmarks.worker_load import make_jobs, run_through
from fetcher.adapters.mongo.document_fields import Document
from tests.e2e.broker import Message
from tests.e2e.cluster import Api, Cluster
from tests.servers import amqp_cleaning
from tests.servers.addresses import read_settings, s3_address, url_of

JOBS: Final = 200
JOBS_IN_TURN: Final = 60
WARM_UP: Final = 20
PLACES: Final = 5
BUSY_MACHINE: Final = 0.05
"""Of the cores' time: less idleness than that, and they are what binds."""
BUSY_PROCESS: Final = 0.5
"""Cores: a process with less to do waits for something else."""
_STOP_SECONDS: Final = 30

Steps = Mapping[str, Sequence[Sequence[float]]]

AS_DEPLOYED: Final = {
    "ENV_NAME": "production",
    "JOB_PREFLIGHT_TEST": "false",
    "JOBS_MAX_PENDING": "100000",
    "JOB_LEASE_SEC": "60",
    "JOB_LEASE_RENEW_SEC": "15",
    "JOB_LEASE_MARGIN_SEC": "10",
    "JOB_REAP_SEC": "5",
    "JOB_DISPATCH_SWEEP_SEC": "5",
    "OUTBOX_REPAIR_SEC": "30",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=JOBS)
    arguments, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder, _cluster(Path(folder)) as cluster:
        bench = _Bench(cluster, arguments.jobs)
        bench.prepare(arguments.rounds)
        with bench.worker(PLACES) as worker, bench.peer(PLACES) as peer:
            _report_rate(
                [
                    (bench.round(worker, cluster), bench.round(peer, bench.peers))
                    for _ in range(arguments.rounds)
                ]
            )
        _report_steps(bench.steps_of_worker(), bench.steps_of_peer())


class _Bench:
    """Both sides have the same jobs, each as records of its own."""

    def __init__(self, cluster: Cluster, jobs: int) -> None:
        """``jobs`` in each round."""
        self._cluster = cluster
        self._jobs = jobs
        self.peers = _peers_of(cluster)
        self._left: dict[str, list[Message]] = {}
        self._servers = {
            "mongodb": listener(urlsplit(cluster.mongo_uri).port or 27017),
            "rabbitmq": listener(urlsplit(cluster.amqp_url).port or 5672),
            "s3": listener(urlsplit(cluster.s3.endpoint).port or 80),
        }

    def prepare(self, rounds: int) -> None:
        count = rounds * self._jobs + JOBS_IN_TURN + 2 * WARM_UP
        with pymongo.MongoClient[Document](self._cluster.mongo_uri) as client:
            ours = client[self._cluster.mongo_name]["job"]
            theirs = client[self.peers.mongo_name]["job"]
            with self._cluster.manager() as (_, api):
                _make_source(self._cluster.folder, api)
                messages = make_jobs(api, self._cluster, ours, count)
            theirs.insert_many(ours.find())
            for index in ours.list_indexes():
                if index["name"] != "_id_":
                    spec = {name: value for name, value in index.items() if name != "v"}
                    theirs.database.command("createIndexes", "job", indexes=[spec])
        self._left = {
            self._cluster.work_queue: list(messages),
            self.peers.work_queue: [_sent_to(self.peers, message) for message in messages],
        }

    @contextmanager
    def worker(self, places: int, *, module: str = "fetcher", **changes: str) -> Iterator[int]:
        self._cluster.changes |= {"RABBITMQ_NUMBERS_OF_WORKERS": str(places), **changes}
        with self._cluster.worker(module=module) as (process, _):
            run_through(self._cluster, self._taken(self._cluster, WARM_UP))
            yield process.pid
            process.send(signal.SIGTERM)
            process.wait_exit(deadline_seconds=_STOP_SECONDS)

    @contextmanager
    def peer(self, places: int, told: Callable[[Steps], object] = id) -> Iterator[int]:
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker_peer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(self._order(places)) + "\n")
            process.stdin.flush()
            if process.stdout.readline() != "ready\n":
                raise SystemExit("the peer did not start")
            run_through(self.peers, self._taken(self.peers, WARM_UP))
            yield process.pid
            answer, _ = process.communicate(timeout=_STOP_SECONDS)
            told(json.loads(answer))

    def round(self, pid: int, cluster: Cluster) -> dict[str, Any]:
        """Jobs a second; CPU a job, in milliseconds, of the process and of the servers."""
        watched = {"worker": pid} | {name: p for name, p in self._servers.items() if p is not None}
        messages = self._taken(cluster, self._jobs)
        before = {name: cpu_seconds(each) for name, each in watched.items()}
        idle = idle_seconds()
        seconds = run_through(cluster, messages)
        used = {name: cpu_seconds(each) - before[name] for name, each in watched.items()}
        return {
            "rate": self._jobs / seconds,
            "idle": (idle_seconds() - idle) / seconds / (os.cpu_count() or 1),
            "cpu_ms": {name: 1000 * spent / self._jobs for name, spent in used.items()},
            "cores": {name: spent / seconds for name, spent in used.items()},
        }

    def steps_of_worker(self) -> Steps:
        written = self._cluster.folder / "steps.json"
        module = "benchmarks.worker_steps"
        with self.worker(1, module=module, FETCHER_BENCH_STEPS=str(written)):
            run_through(self._cluster, self._taken(self._cluster, JOBS_IN_TURN), in_turn=True)
        steps: Steps = json.loads(written.read_text())
        return steps

    def steps_of_peer(self) -> Steps:
        told: list[Steps] = []
        with self.peer(1, told.append):
            run_through(self.peers, self._taken(self.peers, JOBS_IN_TURN), in_turn=True)
        return told[0]

    def _taken(self, cluster: Cluster, count: int) -> list[Message]:
        left = self._left[cluster.work_queue]
        taken, left[:] = left[:count], left[count:]
        return taken

    def _order(self, places: int) -> dict[str, object]:
        return {
            "amqp_url": self.peers.amqp_url,
            "mongo_uri": self.peers.mongo_uri,
            "mongo_name": self.peers.mongo_name,
            "queue": self.peers.work_queue,
            "exchange": self.peers.exchange,
            "s3_endpoint": self.peers.s3.endpoint,
            "s3_access_key": self.peers.s3.access_key,
            "s3_secret_key": self.peers.s3.secret_key,
            "bucket": self.peers.bucket,
            "places": places,
        }


@contextmanager
def _cluster(folder: Path) -> Iterator[Cluster]:
    settings = read_settings()
    amqp_url = url_of(settings, "FETCHER_TEST_AMQP_URL", default_port=5672)
    mongo_uri = url_of(settings, "FETCHER_TEST_MONGO_URI", default_port=27017)
    s3 = s3_address(settings)
    name = f"fetcher-bench-{secrets.token_hex(6)}"
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
        region_name=s3.region,
    )
    with closing(client), ExitStack() as cleaning:
        client.create_bucket(Bucket=name)
        cleaning.callback(remove_bucket, client, name)
        cleaning.callback(_drop_databases, mongo_uri, name)
        of_broker = [f"{name}{part}" for part in ("", ".events", ".subscriber")]
        names = [*of_broker, *(f"{each}.peer" for each in of_broker)]
        cleaning.callback(amqp_cleaning.delete, amqp_url, names)
        yield Cluster(
            folder=folder,
            amqp_url=amqp_url,
            mongo_uri=mongo_uri,
            mongo_name=name,
            s3=s3,
            bucket=name,
            work_queue=of_broker[0],
            exchange=of_broker[1],
            event_queue=of_broker[2],
            changes=AS_DEPLOYED | {"DATASOURCE_SQLITE_DIR": str(folder)},
        )


def _peers_of(cluster: Cluster) -> Cluster:
    return Cluster(
        folder=cluster.folder,
        amqp_url=cluster.amqp_url,
        mongo_uri=cluster.mongo_uri,
        mongo_name=f"{cluster.mongo_name}-peer",
        s3=cluster.s3,
        bucket=cluster.bucket,
        work_queue=f"{cluster.work_queue}.peer",
        exchange=f"{cluster.exchange}.peer",
        event_queue=f"{cluster.event_queue}.peer",
    )


def _sent_to(peers: Cluster, message: Message) -> Message:
    return Message(
        exchange="", routing_key=peers.work_queue, body=message.body, headers=message.headers
    )


def _make_source(folder: Path, api: Api) -> None:
    with closing(sqlite3.connect(folder / "empty.db")) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL)")
    created = api.connect({"configName": "empty", "type": "SQLITE", "databaseName": "empty.db"})
    if created.status != 201:
        raise SystemExit(f"the connection was not created: {created.body}")


def _drop_databases(mongo_uri: str, name: str) -> None:
    with pymongo.MongoClient[dict[str, object]](mongo_uri) as client:
        client.drop_database(name)
        client.drop_database(f"{name}-peer")


def remove_bucket(client: Any, bucket: str) -> None:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        keys = [{"Key": found["Key"]} for found in page.get("Contents", [])]
        if keys:
            client.delete_objects(Bucket=bucket, Delete={"Objects": keys})
    client.delete_bucket(Bucket=bucket)


def _report_rate(rounds: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    ours, theirs = [run for run, _ in rounds], [run for _, run in rounds]
    cores = _medians([run["cores"] for run in ours])
    idle = statistics.median(run["idle"] for run in ours)
    ratios = [own["rate"] / peer["rate"] for own, peer in rounds]
    figure = {
        "figure": "worker.empty_jobs",
        "places": PLACES,
        "jobs_per_second": round(statistics.median(run["rate"] for run in ours), 1),
        "peer_per_second": round(statistics.median(run["rate"] for run in theirs), 1),
        "ratio_to_peer": round(statistics.median(ratios), 2),
        "all_ratios": [round(ratio, 2) for ratio in ratios],
        "cpu_ms_per_job": _medians([run["cpu_ms"] for run in ours]),
        "peer_cpu_ms_per_job": _medians([run["cpu_ms"] for run in theirs]),
        "cores": cores,
        "machine_idle": round(idle, 2),
        "binds": _binding(cores, idle),
    }
    print(json.dumps(figure), flush=True)


def _binding(cores: Mapping[str, float], idle: float) -> str:
    busiest = max(cores, key=lambda name: cores[name])
    if idle < BUSY_MACHINE:
        return "all cores"
    return busiest if cores[busiest] > BUSY_PROCESS else "waiting"


def _report_steps(ours: Steps, theirs: Steps) -> None:
    def milliseconds(steps: Steps, which: int) -> dict[str, float]:
        """A job's, where a step makes more than one call."""
        return {
            name: round(1000 * statistics.median(c[which] for c in calls) * _per_job(calls), 2)
            for name, calls in steps.items()
        }

    figure = {
        "figure": "worker.empty_job.steps",
        "wall_ms": milliseconds(ours, 0),
        "cpu_ms": milliseconds(ours, 1),
        "peer_wall_ms": milliseconds(theirs, 0),
        "peer_cpu_ms": milliseconds(theirs, 1),
    }
    print(json.dumps(figure), flush=True)


def _per_job(calls: Sequence[Sequence[float]]) -> int:
    return round(len(calls) / (JOBS_IN_TURN + WARM_UP))


def _medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(row[name] for row in rows), 2) for name in rows[0]}


if __name__ == "__main__":
    main()
