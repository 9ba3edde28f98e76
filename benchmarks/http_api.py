"""What requests cost: creating jobs at a steady rate, and reading one beside a bare framework.

``python -m benchmarks.http_api [--rounds N]``. Creating: 100 requests/s for 10 s, each another
job, without preflight tests, on the embedded record store (in the process that also runs jobs: they
wait for a source that never answers) and on MongoDB with RabbitMQ. Latency counts from the moment
when a request was due. Reading: ``GET /v1/fetcher/{id}`` of 60 jobs as fast as 16
connections ask, beside a
bare quart-trio answer on the same hypercorn, in turns. Real back ends are those of
``FETCHER_TEST_MONGO_URI`` and ``FETCHER_TEST_AMQP_URL``.
"""

import argparse
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pymongo
from aiormq import Channel

from tests.e2e.broker import address_of, declare, on_channel
from tests.e2e.cluster import KEY, PRODUCT, START_SECONDS, Api, embedded
from tests.servers.processes import fetcher_process, free_port

JOBS_PER_SECOND: Final = 100
JOBS: Final = 1000
READS: Final = 3000
JOBS_READ: Final = 60
"""Different ones: what is asked for the same record at the same time is read once."""
READERS: Final = 16
LOAD_SECONDS: Final = 120
_SETTINGS: Final = {
    "ENV_NAME": "production",
    "JOB_PREFLIGHT_TEST": "false",
    "JOBS_MAX_PENDING": "100000",
}
"""As it is deployed: records of logs are JSON."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments, _ = parser.parse_known_args()
    for name, opened in (("sqlite", _embedded), ("mongodb", _on_real_back_ends)):
        with _serving(opened) as api:
            _report_reading(name, api, arguments.rounds)
        runs = []
        for _ in range(arguments.rounds):
            with _serving(opened) as api:
                runs.append(_create_jobs(api))
        _report_creating(name, runs)


@contextmanager
def _serving(opened: Callable[[Path], AbstractContextManager[Api]]) -> Iterator[Api]:
    """A new store, and a connection whose jobs wait."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as api, _silent_source(api):
        yield api


@contextmanager
def _embedded(folder: Path) -> Iterator[Api]:
    with embedded(folder, **_SETTINGS) as (_, api):
        yield api


@contextmanager
def _on_real_back_ends(folder: Path) -> Iterator[Api]:
    amqp_url, mongo_uri = os.environ["FETCHER_TEST_AMQP_URL"], os.environ["FETCHER_TEST_MONGO_URI"]
    name = f"fetcher_bench_{secrets.token_hex(6)}"
    events = f"{name}.events"
    broker, port = address_of(amqp_url), free_port()
    environment = {
        "APP_ENC_KEY": KEY,
        "MONGO_URI": mongo_uri,
        "MONGO_NAME": name,
        "RABBITMQ_HOST": broker.host,
        "RABBITMQ_PORT_AMQP": str(broker.port),
        "RABBITMQ_DEFAULT_USER": broker.user,
        "RABBITMQ_DEFAULT_PASS": broker.password,
        "RABBITMQ_FETCHER_WORK_QUEUE": name,
        "RABBITMQ_JOB_EVENTS_EXCHANGE": events,
        "ALLOW_INSECURE_TLS": "true",
        "STREAMING_ENABLED": "true",
        "STREAMING_CLOUDEVENTS_SOURCE": "//acme.fetcher/bench",
        "SERVER_ADDRESS": f"127.0.0.1:{port}",
        **_SETTINGS,
    }

    async def delete(channel: Channel) -> None:
        await channel.queue_delete(name)
        await channel.queue_delete(events)
        await channel.exchange_delete(events)

    declare(amqp_url, work_queue=name, exchange=events, event_queue=events)
    try:
        with fetcher_process(["--role=manager"], environment=environment, folder=folder) as process:
            url = f"http://127.0.0.1:{port}/health"
            process.wait_until_answers(url, deadline_seconds=START_SECONDS)
            yield Api(port)
    finally:
        on_channel(amqp_url, delete)
        with pymongo.MongoClient[dict[str, object]](mongo_uri) as client:
            client.drop_database(name)


@contextmanager
def _silent_source(api: Api) -> Iterator[None]:
    """A connection to a port where nobody answers: its jobs wait until they are given up."""
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(READERS)
        created = api.connect(
            {
                "configName": "sales_db",
                "type": "POSTGRESQL",
                "host": "127.0.0.1",
                "port": silent.getsockname()[1],
                "databaseName": "sales",
                "userName": "reader",
                "password": "none",
            }
        )
        if created.status != 201:
            raise SystemExit(f"the connection was not created: {created.body}")
        yield


def _create_jobs(api: Api) -> dict[str, Any]:
    requests = [_job_request(secrets.token_hex(8)) for _ in range(JOBS)]
    return _load(api, requests, per_second=JOBS_PER_SECOND)


def _job_request(correlation_id: str) -> str:
    body = json.dumps(
        {
            "dataRequest": {
                "mappedFields": {"sales_db": {"orders": ["id", "total"], "customers": ["id"]}},
                "filters": {"sales_db": {"orders": {"total": {"gte": [100]}}}},
            },
            "metadata": {"source": PRODUCT, "correlationId": correlation_id},
        }
    )
    head = "POST /v1/fetcher HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}"


def _load(api: Api, requests: Sequence[str], **pace: int) -> dict[str, Any]:
    order = json.dumps({"port": api.port, "requests": requests, **pace})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.http_load"],
        input=order,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=LOAD_SECONDS,
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _report_creating(name: str, runs: Sequence[dict[str, Any]]) -> None:
    quantiles = [statistics.quantiles(run["latencies_ms"], n=100) for run in runs]
    figure = {
        "figure": f"http.create_job.{name}",
        "requests_per_second": JOBS_PER_SECOND,
        "statuses": [run["statuses"] for run in runs],
        "p50_ms": round(statistics.median(q[49] for q in quantiles), 1),
        "p99_ms": round(statistics.median(q[98] for q in quantiles), 1),
        "all_p99_ms": [round(q[98], 1) for q in quantiles],
    }
    print(json.dumps(figure), flush=True)


def _report_reading(name: str, api: Api, rounds: int) -> None:
    paths = [f"/v1/fetcher/{job_id}" for job_id in _ended_jobs(api)]
    reads = [f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n" for path in paths]
    hello = "GET /hello HTTP/1.1\r\nHost: bench\r\n\r\n"
    ratios, rates, peers = [], [], []
    with _peer() as peer:
        for _ in range(rounds):
            theirs = _load(peer, [hello] * READS, connections=READERS)
            ours = _load(api, reads * (READS // JOBS_READ), connections=READERS)
            if set(ours["statuses"]) | set(theirs["statuses"]) != {"200"}:
                raise SystemExit(f"not every read was answered: {ours['statuses']}")
            rates.append(READS / ours["seconds"])
            peers.append(READS / theirs["seconds"])
            ratios.append(rates[-1] / peers[-1])
    figure = {
        "figure": f"http.get_job.{name}",
        "requests_per_second": round(statistics.median(rates)),
        "hello_per_second": round(statistics.median(peers)),
        "ratio_to_hello": round(statistics.median(ratios), 2),
        "all_ratios": [round(ratio, 2) for ratio in ratios],
    }
    print(json.dumps(figure), flush=True)


def _ended_jobs(api: Api) -> list[str]:
    """Ids of jobs that nobody works on."""
    job_ids = []
    for _ in range(JOBS_READ):
        created = api.post_job({"sales_db": {"orders": ["id"]}}, correlationId=secrets.token_hex(8))
        job_ids.append(str(created.body["jobId"]))
        api.call("POST", f"/v1/fetcher/{job_ids[-1]}/cancel")
    for job_id in job_ids:
        api.wait_for_status(job_id, "cancelled")
    return job_ids


@contextmanager
def _peer() -> Iterator[Api]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.http_peer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield Api(int(process.stdout.readline()))
        process.communicate()


if __name__ == "__main__":
    main()
