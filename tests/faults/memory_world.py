"""A manager on real servers, workers to be watched, and a bucket that takes any amount."""

import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymongo

from tests.e2e.cluster import START_SECONDS, Api, Cluster
from tests.faults.memory_watch import MIB, MemoryWatched, resident_mib, watched
from tests.faults.own_sources import Kind, OwnSource, Servers, own_source
from tests.servers import amqp_cleaning
from tests.servers.addresses import (
    SqlAddress,
    mariadb_address,
    postgres_address,
    read_settings,
    url_of,
)
from tests.servers.s3_sink import S3Sink, s3_sink
from tests.servers.waiting import eventually_sync

JOB_SECONDS: Final = 900.0
_STILL_SECONDS: Final = 30.0
_STILL_SAMPLES: Final = 4
"""The last of them are 0.2 s apart."""

SETTINGS: Final = {
    "ENV_NAME": "production",
    "DATASOURCE_INCLUDE_VIEWS": "true",
    "DATASOURCE_QUERY_TIMEOUT_SEC": "600",
    "ENGINE_MAX_RESULT_BYTES": str(1100 * MIB),
    "ENGINE_TIMEOUT_SEC": str(JOB_SECONDS),
    "JOB_PREFLIGHT_TEST": "false",
    "JOB_LEASE_SEC": "60",
    "JOB_LEASE_RENEW_SEC": "15",
    "JOB_LEASE_MARGIN_SEC": "10",
}
"""As deployed, but for the limits of size and time."""


@dataclass(frozen=True, slots=True)
class WatchedWorker:
    """``idle_mib`` is what the process held before its first job."""

    api: Api
    pid: int
    idle_mib: float

    def run(
        self, *post_jobs: Callable[[Api], str], meanwhile: Callable[[], object] = lambda: None
    ) -> tuple[list[Any], MemoryWatched]:
        """The records of jobs that the worker finds all at once, ended, and what they took."""
        with watched(self.pid) as memory:
            os.kill(self.pid, signal.SIGSTOP)
            try:
                ids = [post(self.api) for post in post_jobs]
            finally:
                os.kill(self.pid, signal.SIGCONT)
            meanwhile()
            jobs = [self.api.wait_for_job(each, deadline_seconds=JOB_SECONDS) for each in ids]
        return jobs, memory


@dataclass(frozen=True, slots=True)
class MemoryWorld:
    cluster: Cluster
    api: Api
    sink: S3Sink
    servers: Servers

    @contextmanager
    def worker(self, **changes: str) -> Iterator[WatchedWorker]:
        """One that has run nothing yet, and is idle."""
        before = dict(self.cluster.changes)
        self.cluster.changes.update(changes)
        try:
            with self.cluster.worker() as (process, _):
                yield WatchedWorker(self.api, process.pid, _idle_mib(process.pid))
        finally:
            self.cluster.changes = before

    @contextmanager
    def source(self, kind: Kind) -> Iterator[OwnSource]:
        """Registered, and empty."""
        with own_source(kind, self.servers, name=f"{kind}_{secrets.token_hex(4)}") as source:
            eventually_sync(
                lambda: self.api.connect(source.connection).status in (201, 409),
                deadline_seconds=START_SECONDS,
                what="the source is registered, or was by an attempt whose answer was late",
            )
            yield source


@contextmanager
def memory_world(
    *, keeps: bool = False, mariadb: SqlAddress | None = None
) -> Iterator[MemoryWorld]:
    """``keeps``: the bucket has what was put into it, else sizes alone. ``mariadb`` is in place of
    the test server."""
    settings = read_settings()
    amqp_url = url_of(settings, "FETCHER_TEST_AMQP_URL", default_port=5672)
    mongo_uri = url_of(settings, "FETCHER_TEST_MONGO_URI", default_port=27017)
    name = f"fetcher_t_{secrets.token_hex(6)}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fetcher-memory-")))
        for each in ("sources", "bucket"):
            (folder / each).mkdir()
        sink = stack.enter_context(s3_sink(folder / "bucket" if keeps else None))
        of_broker = [f"{name}{part}" for part in ("", ".events", ".subscriber")]
        stack.callback(amqp_cleaning.delete, amqp_url, of_broker)
        stack.callback(_drop, mongo_uri, name)
        cluster = Cluster(
            folder=folder,
            amqp_url=amqp_url,
            mongo_uri=mongo_uri,
            mongo_name=name,
            s3=sink.access,
            bucket="sink",
            work_queue=of_broker[0],
            exchange=of_broker[1],
            event_queue=of_broker[2],
            changes=SETTINGS | {"DATASOURCE_SQLITE_DIR": str(folder / "sources")},
        )
        servers = Servers(
            postgres=postgres_address(settings),
            mariadb=mariadb or mariadb_address(settings),
            sqlite_folder=folder / "sources",
        )
        _, api = stack.enter_context(cluster.manager())
        yield MemoryWorld(cluster, api, sink, servers)


def _idle_mib(pid: int) -> float:
    """Once it no longer changes."""
    seen = [0.0] * _STILL_SAMPLES

    def is_still() -> bool:
        seen.append(resident_mib(pid))
        return max(seen[-_STILL_SAMPLES:]) - min(seen[-_STILL_SAMPLES:]) < 1

    eventually_sync(is_still, deadline_seconds=_STILL_SECONDS, what="the worker is idle")
    return seen[-1]


def _drop(mongo_uri: str, name: str) -> None:
    with pymongo.MongoClient[dict[str, Any]](mongo_uri) as client:
        client.drop_database(name)
