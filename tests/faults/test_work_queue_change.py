"""From the classic to the quorum work queue while jobs flow, by the commands of the page."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from pathlib import Path
from typing import Any

import pymongo
import pytest
from aiormq import Channel
from mypy_boto3_s3 import S3Client

from fetcher.adapters.amqp.topology import EVENTS_EXCHANGE, WORK_QUEUE
from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE
from scripts.servers.launches import executable
from tests.e2e import broker
from tests.e2e.cluster import START_SECONDS, Api, Cluster, postgres_connection
from tests.e2e.documented import run_shell, shell_text
from tests.faults.sigterm_load import Load, Records, check_ends, make_sources
from tests.scale import nightly
from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.own_servers import OwnServer, own_server
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

PAGE = "migration.md"
NEW_QUEUE = "fetcher.extract-external-data.quorum"
JOBS_AT_EACH_STEP = 3
MOST_TRIES = 5
FOREIGN = [f"no work message {number}".encode() for number in range(130)]
"""More than a list tells of."""


class Classic(Cluster):
    """As the reference has left it: classic queues, and somebody who hears of the events."""

    def declare(self) -> None:
        ended = run_shell(
            "fetcher topology declare --queue-type=classic --bucket",
            environment={**self.environment(), "FETCHER_DATA_DIR": str(self.folder / "data")},
            folder=self.folder,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

        async def subscribe(channel: Channel) -> None:
            await channel.queue_declare(self.event_queue, durable=True)
            for key in ("job.completed", "job.failed"):
                await channel.queue_bind(self.event_queue, self.exchange, key)
            for body in FOREIGN:
                await channel.basic_publish(body, routing_key=DEAD_LETTER_QUEUE)

        broker.on_channel(self.amqp_url, subscribe)


@pytest.fixture
def rabbit() -> Iterator[OwnServer]:
    """A broker of this test's own: the page's names are those of everybody."""
    with own_server("RabbitMQ") as server:
        yield server


@pytest.fixture
def old(
    rabbit: OwnServer,
    tmp_path: Path,
    mongo_uri: str,
    mongo_database: Callable[[], str],
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
) -> Cluster:
    return Classic(
        folder=tmp_path,
        amqp_url=broker.url_at(rabbit.port),
        mongo_uri=mongo_uri,
        mongo_name=mongo_database(),
        s3=s3_access,
        bucket=s3_bucket(),
        work_queue=WORK_QUEUE,
        exchange=EVENTS_EXCHANGE,
        event_queue="subscriber",
        changes={
            "DATASOURCE_INCLUDE_VIEWS": "true",
            "READYZ_DRAIN_DELAY_SEC": "0.3",
            # Nothing here is to be mended by a lease that runs out.
            "JOB_LEASE_SEC": "60",
            "JOB_LEASE_RENEW_SEC": "15",
            "JOB_LEASE_MARGIN_SEC": "10",
        },
    )


def renamed(cluster: Cluster) -> Cluster:
    """The same, as who was started after the page's ``export`` sees it."""
    changed = copy(cluster)
    changed.work_queue = NEW_QUEUE
    return changed


def rabbitmqctl() -> str:
    """Debian's on the path admits root and one user only: the script behind it first."""
    found = executable("rabbitmqctl", folders=[Path("/usr/lib/rabbitmq/bin")])
    assert found is not None
    return found


class Page:
    """Runs the page's commands with the worker's settings, ``rabbitmqctl`` on this broker."""

    def __init__(self, cluster: Cluster, rabbit: OwnServer) -> None:
        self._cluster = cluster
        self._rabbit = rabbit

    def run(self, name: str, *, environment: Mapping[str, str] | None = None) -> str:
        """What it printed."""
        ended = self._ended(name, environment or {})
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def refusal(self, name: str) -> str:
        """What it complained of; empty where it was done."""
        ended = self._ended(name, {})
        return ended.stderr if ended.returncode else ""

    def _ended(
        self, name: str, environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        wide = {"COLUMNS": "200", "FETCHER_DATA_DIR": str(self._cluster.folder / "data")}
        return run_shell(
            f'rabbitmqctl() {{ {rabbitmqctl()} "$@"; }}\n{shell_text(PAGE, name)}',
            environment={
                **self._rabbit.environment(),
                **self._cluster.environment(),
                **wide,
                **environment,
            },
            folder=self._cluster.folder,
        )


class Running:
    """Processes by their names, each stopped as an operator would: SIGTERM, and it ends well."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._processes: dict[str, FetcherProcess] = {}

    def start(self, name: str, made: AbstractContextManager[tuple[FetcherProcess, Api]]) -> Api:
        process, api = self._stack.enter_context(made)
        self._processes[name] = process
        return api

    def stop(self, name: str) -> None:
        process = self._processes.pop(name)
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=START_SECONDS) == 0


def more_jobs(load: Load) -> None:
    """A step is taken while jobs come in: these are of the time after it."""
    wanted = len(load.posted) + JOBS_AT_EACH_STEP
    eventually_sync(
        lambda: load.failures or len(load.posted) >= wanted,
        deadline_seconds=60,
        what="jobs flow",
    )
    assert load.failures == []


@nightly("three minutes: two brokers, two workers, each command of the page")
def test_no_job_is_lost_or_run_twice_while_the_quorum_queue_takes_over(
    old: Cluster, rabbit: OwnServer, shop: SqlAddress, s3_client: S3Client
) -> None:
    make_sources(shop)
    new, page = renamed(old), Page(old, rabbit)
    with pymongo.MongoClient[dict[str, Any]](old.mongo_uri) as client, ExitStack() as stack:
        running = Running(stack)
        first = running.start("manager 1", old.manager())
        second = running.start("manager 2", old.manager())
        for name in ("old 1", "old 2"):
            running.start(name, old.worker(name))
        assert first.connect(postgres_connection(shop)).status == 201
        load = Load(first, Records(client, old.mongo_name))
        with load.flowing():
            more_jobs(load)
            told = page.run("declare")
            assert "accepted" in told  # the classic queue of dead letters
            more_jobs(load)
            for name in ("new 1", "new 2"):
                running.start(name, new.worker(name))
            more_jobs(load)
            load.api = second
            running.stop("manager 1")
            load.api = running.start("manager 3", new.manager())
            more_jobs(load)
            running.stop("manager 2")
            running.start("manager 4", new.manager())
            more_jobs(load)
            stop_old_workers(running, ["old 1", "old 2"], rabbit)
            delete_old_queue(page, running, old, rabbit)
            more_jobs(load)
            page.run("letters", environment={"RABBITMQ_FETCHER_WORK_QUEUE": NEW_QUEUE})
            more_jobs(load)
        for job_id in load.posted:
            load.api.wait_for_job(job_id, deadline_seconds=240)
        check_ends(new, load, s3_client)
        assert {job["takeovers"] for job in load.mongo.all_by_id().values()} == {0}
    # A quorum queue tells its numbers every few seconds.
    eventually_sync(
        lambda: rabbit_queues(rabbit)[NEW_QUEUE] == ("quorum", 0),
        deadline_seconds=30,
        what="nothing is left in the new queue",
    )
    queues = rabbit_queues(rabbit)
    assert queues[DEAD_LETTER_QUEUE] == ("quorum", 0)
    assert WORK_QUEUE not in queues
    saved = (old.folder / "letters.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["body"].encode() for line in saved) == sorted(FOREIGN)


def stop_old_workers(running: Running, names: Sequence[str], rabbit: OwnServer) -> None:
    """Once the old queue is empty, with nothing of it in anybody's hand."""
    eventually_sync(
        lambda: rabbit_queues(rabbit)[WORK_QUEUE] == ("classic", 0),
        deadline_seconds=90,
        what="the old queue is empty",
    )
    for name in names:
        running.stop(name)


def delete_old_queue(page: Page, running: Running, old: Cluster, rabbit: OwnServer) -> None:
    """Where it is refused, as the page says: a worker of the old name once more."""
    for number in range(MOST_TRIES):
        refusal = page.refusal("delete")
        if not refusal:
            return
        assert "not empty" in refusal, refusal
        name = f"old again {number}"
        running.start(name, old.worker(name))
        stop_old_workers(running, [name], rabbit)
    pytest.fail("the old queue is never empty")


def rabbit_queues(rabbit: OwnServer) -> dict[str, tuple[str, int]]:
    """Type and messages of each, as the broker says."""
    ended = run_shell(
        f"{rabbitmqctl()} -q list_queues name type messages --formatter=json",
        environment=rabbit.environment(),
        folder=Path("/"),
    )
    assert ended.returncode == 0, ended.stderr
    return {each["name"]: (each["type"], each["messages"]) for each in json.loads(ended.stdout)}
