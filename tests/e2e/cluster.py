"""A manager and workers as processes on real services, and one embedded process."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fetcher.consumer import derive_keys, open_result, verify_event
from fetcher.crypto.keys import KeyRing
from tests.e2e import broker
from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.processes import FetcherProcess, free_port, running
from tests.servers.waiting import eventually_sync

ROOT = Path(__file__).parents[2]
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SOURCE = "//acme.fetcher/worker-1"
START_SECONDS = 40.0
JOB_SECONDS = 40.0
PRODUCT = "acme-reports"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Api:
    """One API under test; ``token`` is sent where it asks for one."""

    port: int
    token: str = ""

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        data = raw or (None if body is None else json.dumps(body).encode())
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=data,
            method=method,
            headers={"Content-Type": "application/json", "X-Product-Name": PRODUCT}
            | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
            | dict(headers or {}),
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
                text = answer.read()
                return Answer(
                    answer.status, json.loads(text) if text else None, dict(answer.headers)
                )
        except urllib.error.HTTPError as refused:
            with refused:
                text = refused.read()
                return Answer(
                    refused.code, json.loads(text) if text else None, dict(refused.headers)
                )

    def text(self, path: str) -> str:
        """What is no JSON."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            read: bytes = answer.read()
            return read.decode()

    def connect(self, body: Mapping[str, object]) -> Answer:
        return self.call("POST", "/v1/management/connections", body)

    def post_job(self, fields: object, filters: object = None, **metadata: object) -> Answer:
        request: dict[str, object] = {"mappedFields": fields}
        if filters is not None:
            request["filters"] = filters
        body = {"dataRequest": request, "metadata": {"source": PRODUCT, **metadata}}
        return self.call("POST", "/v1/fetcher", body)

    def job(self, job_id: str) -> Any:
        answer = self.call("GET", f"/v1/fetcher/{job_id}")
        assert answer.status == 200, answer.body
        return answer.body

    def wait_for_job(self, job_id: str, *, deadline_seconds: float = JOB_SECONDS) -> Any:
        """The record once it is terminal."""

        def ended() -> Any:
            job = self.job(job_id)
            return None if job["status"] in ("pending", "processing") else job

        return eventually_sync(ended, deadline_seconds=deadline_seconds, what=f"job {job_id} ends")

    def wait_for_status(self, job_id: str, status: str) -> None:
        eventually_sync(
            lambda: self.job(job_id)["status"] == status,
            deadline_seconds=JOB_SECONDS,
            what=f"job {job_id} is {status}",
        )


def postgres_connection(address: SqlAddress, **changes: object) -> dict[str, object]:
    return {
        "configName": "sales_db",
        "type": "POSTGRESQL",
        "host": address.host,
        "port": address.port,
        "databaseName": address.database,
        "userName": address.user,
        "password": address.password or "none",
        **changes,
    }


def common_settings(s3: S3Access, bucket: str) -> dict[str, str]:
    """Where results and events go, and times that a test can wait for."""
    return {
        "STREAMING_ENABLED": "true",
        "STREAMING_CLOUDEVENTS_SOURCE": SOURCE,
        "OBJECT_STORAGE_ENDPOINT": s3.endpoint,
        "OBJECT_STORAGE_BUCKET": bucket,
        "OBJECT_STORAGE_ACCESS_KEY_ID": s3.access_key,
        "OBJECT_STORAGE_SECRET_KEY": s3.secret_key,
        "OBJECT_STORAGE_USE_PATH_STYLE": "true",
        "ALLOW_INSECURE_TLS": "true",
        "READYZ_DRAIN_DELAY_SEC": "1",
        "SHUTDOWN_JOB_WAIT_SEC": "5",
        "JOB_LEASE_SEC": "4",
        "JOB_LEASE_RENEW_SEC": "1",
        "JOB_LEASE_MARGIN_SEC": "1",
        "JOB_REAP_SEC": "0.5",
        "JOB_DISPATCH_SWEEP_SEC": "0.5",
        "OUTBOX_REPAIR_SEC": "1",
    }


@dataclass
class Cluster:
    """Names of one test's own objects, and the environment of its processes."""

    folder: Path
    amqp_url: str
    mongo_uri: str
    mongo_name: str
    s3: S3Access
    bucket: str
    work_queue: str
    exchange: str
    event_queue: str
    changes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = KeyRing.from_text(KEY).current
        self.declare()

    def declare(self) -> None:
        broker.declare(
            self.amqp_url,
            work_queue=self.work_queue,
            exchange=self.exchange,
            event_queue=self.event_queue,
        )

    def environment(self) -> dict[str, str]:
        at = broker.address_of(self.amqp_url)
        return {
            "APP_ENC_KEY": KEY,
            "MONGO_URI": self.mongo_uri,
            "MONGO_NAME": self.mongo_name,
            "RABBITMQ_HOST": at.host,
            "RABBITMQ_PORT_AMQP": str(at.port),
            "RABBITMQ_DEFAULT_USER": at.user,
            "RABBITMQ_DEFAULT_PASS": at.password,
            "RABBITMQ_FETCHER_WORK_QUEUE": self.work_queue,
            "RABBITMQ_JOB_EVENTS_EXCHANGE": self.exchange,
            **common_settings(self.s3, self.bucket),
            **self.changes,
        }

    @contextmanager
    def manager(
        self, name: str = "manager", *, module: str = "fetcher", waits: bool = True
    ) -> Iterator[tuple[FetcherProcess, Api]]:
        """As :meth:`worker`, at the port of its API."""
        port = free_port()
        environment = {
            **self.environment(),
            "SERVER_ADDRESS": f"127.0.0.1:{port}",
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", module, "--role=manager"]
        with running(command, environment=environment, folder=self.folder, name=name) as process:
            if waits:
                process.wait_until_answers(
                    f"http://127.0.0.1:{port}/health", deadline_seconds=START_SECONDS
                )
            yield process, Api(port)

    @contextmanager
    def worker(
        self, name: str = "worker", *, module: str = "fetcher", waits: bool = True
    ) -> Iterator[tuple[FetcherProcess, Api]]:
        """The API of a worker is its health port. ``module`` is a stand-in for the command, which
        may end at any moment: without ``waits`` nothing is expected of it at its start."""
        port = free_port()
        environment = {**self.environment(), "HEALTH_PORT": str(port), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", module, "--role=worker"]
        with running(command, environment=environment, folder=self.folder, name=name) as process:
            if waits:
                process.wait_until_answers(
                    f"http://127.0.0.1:{port}/health", deadline_seconds=START_SECONDS
                )
            yield process, Api(port)

    def events(self, count: int, *, deadline_seconds: float = JOB_SECONDS) -> list[broker.Message]:
        """Events until there are so many."""
        found: list[broker.Message] = []

        def read() -> bool:
            found.extend(broker.read_all(self.amqp_url, self.event_queue))
            return len(found) >= count

        eventually_sync(read, deadline_seconds=deadline_seconds, what=f"{count} events")
        return found


@contextmanager
def embedded(
    folder: Path, *, name: str = "all", module: str = "fetcher", **changes: str
) -> Iterator[tuple[FetcherProcess, Api]]:
    """`fetcher --role=all` in a folder, without a service; ``module`` is a stand-in for it."""
    with starting_embedded(folder, changes, name=name, module=module) as (process, api):
        process.wait_until_answers(
            f"http://127.0.0.1:{api.port}/health", deadline_seconds=START_SECONDS
        )
        yield process, api


@contextmanager
def starting_embedded(
    folder: Path, changes: Mapping[str, str], *, name: str = "all", module: str = "fetcher"
) -> Iterator[tuple[FetcherProcess, Api]]:
    """As :func:`embedded`, which may end at any moment: nothing is expected of it."""
    address = changes.get("SERVER_ADDRESS", f"127.0.0.1:{free_port()}")
    port = int(address.rpartition(":")[2])
    environment = {
        "SERVER_ADDRESS": address,
        "READYZ_DRAIN_DELAY_SEC": "0.5",
        "SHUTDOWN_JOB_WAIT_SEC": "5",
        "PYTHONPATH": str(ROOT),
        **changes,
    }
    command = [sys.executable, "-m", module, "--role=all"]
    with running(command, environment=environment, folder=folder, name=name) as process:
        yield process, Api(port)


def opened(folder: Path, job_id: str) -> Any:
    return json.loads(opened_document(folder, job_id))


def opened_document(folder: Path, job_id: str) -> bytes:
    """What a consumer does: the event from the log, its signature, the sealed file."""
    data = folder / "fetcher-data"
    keys = derive_keys((data / "master.key").read_text())

    def event_line() -> Any:
        lines = map(json.loads, (data / "events.jsonl").read_text().splitlines())
        return next((line for line in lines if job_id in line["body"]), None)

    line = eventually_sync(event_line, deadline_seconds=10, what="the event")
    verify_event(
        line["headers"],
        line["body"].encode(),
        line["exchange"],
        line["routingKey"],
        key=keys.external_hmac,
    )
    result = json.loads(line["body"])["result"]
    with open_result(
        (data / "objects" / result["path"]).read_bytes(),
        storage_key=keys.storage,
        hmac_key=keys.external_hmac,
        expected_hmac=result["hmac"],
        expected_size=result["sizeBytes"],
    ) as document:
        read: bytes = document.read()
        return read
