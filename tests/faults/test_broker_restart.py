"""The broker is restarted in the middle: jobs and events are late, none is lost."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from scripts.servers.daemons import Daemon, free_port, stop
from scripts.servers.launches import Place, find_rabbitmq
from tests.e2e import broker
from tests.e2e.cluster import Cluster, postgres_connection
from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.waiting import eventually_sync

BOOT_SECONDS = 60.0


class OwnBroker:
    """A RabbitMQ of the test's own, from the installed package; its queues survive its end."""

    def __init__(self, folder: Path) -> None:
        launch = find_rabbitmq()
        if launch is None:
            pytest.fail("rabbitmq-server is not installed: make services", pytrace=False)
        self._launch = launch
        self._place = Place(data=folder / "data", log=folder / "log", port=free_port())
        self._daemons: list[Daemon] = []
        self.url = f"amqp://guest:guest@127.0.0.1:{self._place.port}/"

    def start(self) -> None:
        self._launch(self._place, self._daemons.append)
        eventually_sync(self._answers, deadline_seconds=BOOT_SECONDS, what="the broker answers")

    def _answers(self) -> bool:
        async def nothing(_: object) -> bool:
            return True

        # Refused, reset, or not yet admitting us: all of it means not yet.
        with suppress(Exception):
            return broker.on_channel(self.url, nothing)
        return False

    def stop(self) -> None:
        stop(self._daemons)
        self._daemons.clear()


@contextmanager
def own_broker() -> Iterator[OwnBroker]:
    # Not below pytest's folder: the server's own user must be able to enter.
    folder = Path(tempfile.mkdtemp(prefix="fetcher-broker-"))
    folder.chmod(0o755)
    server = OwnBroker(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_nothing_is_lost_when_the_broker_restarts_in_the_middle(
    tmp_path: Path,
    mongo_uri: str,
    mongo_database: Callable[[], str],
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
    shop: SqlAddress,
) -> None:
    with own_broker() as rabbit, ExitStack() as stack:
        cluster = Cluster(
            folder=tmp_path,
            amqp_url=rabbit.url,
            mongo_uri=mongo_uri,
            mongo_name=mongo_database(),
            s3=s3_access,
            bucket=s3_bucket(),
            work_queue="work",
            exchange="events",
            event_queue="subscriber",
            changes={"RABBITMQ_NUMBERS_OF_WORKERS": "2"},
        )
        _, api = stack.enter_context(cluster.manager())
        stack.enter_context(cluster.worker())
        assert api.connect(postgres_connection(shop)).status == 201
        fields = {"sales_db": {"orders": ["id"]}}
        with psycopg.connect(shop.conninfo) as locker:
            # Two jobs run, two lie in the queue, when the broker goes.
            locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            jobs = [api.post_job(fields, n=n).body["jobId"] for n in range(4)]
            eventually_sync(
                lambda: sum(api.job(j)["status"] == "processing" for j in jobs) == 2,
                deadline_seconds=30,
                what="two jobs run",
            )
            rabbit.stop()
            locker.rollback()
        # While it is away: jobs in hand end, new ones are taken.
        late = [api.post_job(fields, n=n).body["jobId"] for n in range(4, 8)]
        eventually_sync(
            lambda: sum(api.job(j)["status"] == "completed" for j in jobs) >= 2,
            deadline_seconds=30,
            what="the jobs in hand end",
        )
        rabbit.start()
        for job_id in (*jobs, *late):
            assert api.wait_for_job(job_id, deadline_seconds=240)["status"] == "completed"
        # Their back-off has grown while the broker was away: up to five minutes, by design.
        events = cluster.events(8, deadline_seconds=300)
        assert {event.header("ce-id") for event in events} == {
            f"fetcher.job.completed.{job_id}" for job_id in (*jobs, *late)
        }
