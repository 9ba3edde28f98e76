"""The broker is restarted in the middle: jobs and events are late, none is lost."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg

from tests.e2e.broker import url_at
from tests.e2e.cluster import Cluster, postgres_connection
from tests.scale import nightly
from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.own_servers import own_server
from tests.servers.waiting import eventually_sync


@nightly("two minutes of waits that grow")
def test_nothing_is_lost_when_the_broker_restarts_in_the_middle(
    tmp_path: Path,
    mongo_uri: str,
    mongo_database: Callable[[], str],
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
    shop: SqlAddress,
) -> None:
    with own_server("RabbitMQ") as rabbit, ExitStack() as stack:
        cluster = Cluster(
            folder=tmp_path,
            amqp_url=url_at(rabbit.port),
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
