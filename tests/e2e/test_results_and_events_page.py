"""docs/results-and-events.md: everything on it is run here, on RabbitMQ, S3 and MongoDB."""

import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiormq import Channel
from mypy_boto3_s3 import S3Client

from fetcher.adapters.amqp.wire import WireProperties
from tests.e2e import broker
from tests.e2e.cluster import KEY, SOURCE, Cluster, postgres_connection
from tests.e2e.documented import ROOT, blocks, run_shell, unnamed_blocks
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess, running

KEY_FILES = ("external.key", "storage.key")
PAGE = "results-and-events.md"
BLOCKS = blocks(PAGE)
FIELDS = {"sales_db": {"orders": ["id", "total"]}}
FILTERS = {"sales_db": {"orders": {"total": {"gte": [1099.00]}}}}
ROWS = {"sales_db": {"orders": [{"id": 9007199254741993, "total": "1100.00"}]}}


def test_every_block_of_the_page_is_run_by_this_module() -> None:
    assert set(BLOCKS) == {"keys", "consumer.py", "verify", "open", "downloaded", "routing.py"}
    assert unnamed_blocks(PAGE) == 2, "but for the installation, which says why"


@pytest.fixture
def keys(cluster: Cluster) -> Path:
    """The block that derives them."""
    made = run_shell(BLOCKS["keys"], environment={"APP_ENC_KEY": KEY}, folder=cluster.folder)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert {(cluster.folder / name).stat().st_mode & 0o077 for name in KEY_FILES} == {0}
    external = (cluster.folder / "external.key").read_text().strip()
    assert bytes.fromhex(external) == cluster.keys.external_hmac
    return cluster.folder


class Consumer:
    """The page's consumer as a process, on one queue."""

    def __init__(self, cluster: Cluster, queue: str) -> None:
        self.cluster, self.queue = cluster, queue

    def environment(self) -> dict[str, str]:
        s3 = self.cluster.s3
        return {
            "PYTHONPATH": str(ROOT),
            "AMQP_URL": self.cluster.amqp_url,
            "QUEUE": self.queue,
            "BUCKET": self.cluster.bucket,
            "S3_ENDPOINT": s3.endpoint,
            "AWS_ACCESS_KEY_ID": s3.access_key,
            "AWS_SECRET_ACCESS_KEY": s3.secret_key,
            "AWS_DEFAULT_REGION": s3.region,
        }

    @contextmanager
    def run(self) -> Any:
        (self.cluster.folder / "consumer.py").write_text(BLOCKS["consumer.py"])
        with running(
            [sys.executable, "consumer.py"],
            environment=self.environment(),
            folder=self.cluster.folder,
            name="consumer",
        ) as process:
            yield process


def printed(process: FetcherProcess, count: int) -> list[Any]:
    def lines() -> list[str]:
        return process.output_path.read_text().splitlines()

    process.wait_until(lambda _: len(lines()) >= count, deadline_seconds=30)
    return [json.loads(line) for line in lines()]


def refused(process: FetcherProcess, text: str) -> None:
    process.wait_until(lambda p: text in p.log(), deadline_seconds=30)


def put(cluster: Cluster, message: broker.Message, *, body: bytes | None = None) -> None:
    """The message again, under its own route and headers."""

    async def publish(channel: Channel) -> None:
        await channel.basic_publish(
            message.body if body is None else body,
            exchange=message.exchange,
            routing_key=message.routing_key,
            properties=WireProperties(message.headers, message_id=""),
        )

    broker.on_channel(cluster.amqp_url, publish)


def kept(message: broker.Message) -> dict[str, Any]:
    headers = {
        name: value.decode() if isinstance(value, bytes | bytearray) else value
        for name, value in message.headers.items()
    }
    return {
        "exchange": message.exchange,
        "routingKey": message.routing_key,
        "headers": headers,
        "body": message.body.decode(),
    }


def test_the_consumer_of_the_page_opens_results_and_refuses_what_was_tampered_with(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, keys: Path
) -> None:
    consumer = Consumer(cluster, cluster.event_queue)
    with cluster.manager() as (_, api), cluster.worker():
        assert api.connect(postgres_connection(shop)).status == 201
        job_id = api.post_job(FIELDS, FILTERS).body["jobId"]
        failed_id = api.post_job({"sales_db": {"nothing": ["x"]}}).body["jobId"]
        job = api.wait_for_job(job_id)
        api.wait_for_job(failed_id)
        events = cluster.events(2)
        completed = next(e for e in events if e.routing_key == "job.completed")
        failed = next(e for e in events if e.routing_key == "job.failed")

        with consumer.run() as process:
            put(cluster, completed)
            assert printed(process, 1) == [{"job": job_id, "completed": ROWS}]
            # A repetition is dropped; a failed job tells why.
            put(cluster, completed)
            put(cluster, failed)
            [_, told] = printed(process, 2)
            assert told["job"] == failed_id
            assert "nothing" in told["failed"]["message"]

            tampered = completed.body.replace(b'"rowCount":1', b'"rowCount":7')
            assert tampered != completed.body
            put(cluster, completed, body=tampered)
            refused(process, "event rejected: signature verification failed")
        with consumer.run() as process:
            # A fetch that fails settles nothing for good: the event comes again, and then is told.
            sealed = s3_client.get_object(Bucket=cluster.bucket, Key=job["resultPath"])
            content = sealed["Body"].read()
            s3_client.delete_object(Bucket=cluster.bucket, Key=job["resultPath"])
            put(cluster, completed)
            refused(process, "tried again: NoSuchKey")
            s3_client.put_object(Bucket=cluster.bucket, Key=job["resultPath"], Body=content)
            assert printed(process, 3)[-1] == {"job": job_id, "completed": ROWS}
        with consumer.run() as process:
            # Another process has seen nothing yet: it fetches, and finds a changed object.
            tamper(s3_client, cluster.bucket, job["resultPath"])
            put(cluster, completed)
            refused(process, "result rejected: not authentic")
        assert len(printed(process, 3)) == 3
        assert broker.read_all(cluster.amqp_url, cluster.event_queue) == []


def tamper(s3_client: S3Client, bucket: str, key: str) -> None:
    sealed = s3_client.get_object(Bucket=bucket, Key=key)["Body"].read()
    changed = bytearray(sealed)
    changed[40] = ord("A") if changed[40] != ord("A") else ord("B")
    s3_client.put_object(Bucket=bucket, Key=key, Body=bytes(changed))


def test_the_commands_of_the_page(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, keys: Path
) -> None:
    with cluster.manager() as (_, api), cluster.worker():
        assert api.connect(postgres_connection(shop)).status == 201
        job = api.wait_for_job(api.post_job(FIELDS, FILTERS).body["jobId"])
        [event] = cluster.events(1)
    (keys / "event.json").write_text(json.dumps(kept(event)))
    verified = run_shell(BLOCKS["verify"], environment={}, folder=keys)
    assert (verified.returncode, verified.stderr) == (0, "")
    words, line = verified.stdout.splitlines()
    event_id = f"fetcher.job.completed.{job['id']}"
    assert words == f"valid: {event_id}, result {job['resultPath']}"
    told = json.loads(line)
    assert told.items() >= {"valid": True, "id": event_id, "source": SOURCE}.items()

    environment = {
        **cluster.environment(),
        "RESULT_PATH": job["resultPath"],
        "RESULT_HMAC": told["hmac"],
        "RESULT_SIZE": str(told["sizeBytes"]),
    }
    opened = run_shell(BLOCKS["open"], environment=environment, folder=keys)
    assert opened.returncode == 0, opened.stderr
    saved = keys / "result.json"
    assert json.loads(saved.read_text()) == ROWS
    assert saved.stat().st_mode & 0o777 == 0o600
    assert (keys / "same.json").read_bytes() == saved.read_bytes()

    file = keys / "downloaded.sealed"
    file.write_bytes(
        s3_client.get_object(Bucket=cluster.bucket, Key=job["resultPath"])["Body"].read()
    )
    asked = {name: environment[name] for name in ("RESULT_HMAC", "RESULT_SIZE")}
    asked |= {"FILE": str(file), "FETCHER_EXTERNAL_HMAC_KEY": (keys / "external.key").read_text()}
    opened = run_shell(BLOCKS["downloaded"], environment=asked, folder=keys)
    assert opened.returncode == 0, opened.stderr
    assert (keys / "downloaded.json").read_bytes() == saved.read_bytes()

    saved.unlink()
    tamper(s3_client, cluster.bucket, job["resultPath"])
    opened = run_shell(BLOCKS["open"], environment=environment, folder=keys)
    assert (opened.returncode, opened.stdout) == (3, "")
    assert opened.stderr.endswith("open-result: result rejected: not authentic\n")
    assert not saved.exists()


def test_events_are_routed_by_their_source(
    cluster: Cluster, shop: SqlAddress, amqp_name: Callable[[str], str]
) -> None:
    by_source, queues = amqp_name("by-source"), {}
    (cluster.folder / "routing.py").write_text(BLOCKS["routing.py"])
    for source in (SOURCE, "//other.fetcher/worker-1"):
        queues[source] = amqp_name("routed")
        environment = {
            "AMQP_URL": cluster.amqp_url,
            "EVENTS_EXCHANGE": cluster.exchange,
            "BY_SOURCE": by_source,
            "QUEUE": queues[source],
            "SOURCE": source,
        }
        bound = run_shell(
            f'"{sys.executable}" routing.py', environment=environment, folder=cluster.folder
        )
        assert (bound.returncode, bound.stderr) == (0, "")
    with cluster.manager() as (_, api), cluster.worker():
        assert api.connect(postgres_connection(shop)).status == 201
        job_id = api.post_job(FIELDS).body["jobId"]
        [event] = cluster.events(1)
        [routed] = broker.read_all(cluster.amqp_url, queues[SOURCE])
    assert routed == event
    assert routed.header("ce-id") == f"fetcher.job.completed.{job_id}"
    assert broker.read_all(cluster.amqp_url, queues["//other.fetcher/worker-1"]) == []
