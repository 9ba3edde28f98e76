"""Manager and workers as processes on MongoDB, RabbitMQ, S3 and PostgreSQL."""

import json
import signal
import urllib.request

from mypy_boto3_s3 import S3Client

from fetcher.consumer import open_result, verify_event
from fetcher.crypto.signer import MessageVerifier, SignatureOutcome
from tests.e2e import broker
from tests.e2e.cluster import SOURCE, Cluster, postgres_connection
from tests.servers.addresses import SqlAddress
from tests.servers.processes import http_status
from tests.servers.waiting import eventually_sync

FIELDS = {"sales_db": {"orders": ["id", "total"]}}
FILTERS = {"sales_db": {"orders": {"total": {"gte": [1099.00]}}}}


def test_one_job_through_the_real_broker_and_both_roles_drain(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client
) -> None:
    with cluster.manager() as (manager, api):
        assert api.connect(postgres_connection(shop)).status == 201
        posted = api.post_job(FIELDS, FILTERS, correlationId="c-42")
        assert posted.status == 202
        job_id = posted.body["jobId"]
        check_work_message(cluster, job_id)
        # The message was taken out by the look at it: the same request again finds the job, and the
        # dispatcher sends anew what the queue cannot hold any more. Here: a new job, and workers.
        posted = api.post_job(FIELDS, FILTERS, correlationId="c-43")
        job_id = posted.body["jobId"]
        with cluster.worker("first") as (first, first_api), cluster.worker("second") as (second, _):
            job = api.wait_for_job(job_id)
            assert job["status"] == "completed"
            check_event_and_result(cluster, s3_client, job, posted.body)
            for process, port in ((first, first_api.port), (manager, api.port)):
                process.send(signal.SIGTERM)
                url = f"http://127.0.0.1:{port}/readyz"
                process.wait_until(lambda _, url=url: http_status(url) == 503, deadline_seconds=5)  # type: ignore[misc] # a default binds the loop's value
                assert process.wait_exit(deadline_seconds=30) == 0
            second.send(signal.SIGTERM)
            assert second.wait_exit(deadline_seconds=30) == 0


def check_work_message(cluster: Cluster, job_id: str) -> None:
    """The message on the wire: signed with the internal key for exactly its route."""
    [message] = broker_messages(cluster)
    body = json.loads(message.body)
    assert body["jobId"] == job_id
    assert body["mappedFields"] == FIELDS
    assert body["filters"] == FILTERS
    assert message.exchange == ""
    assert message.routing_key == cluster.work_queue
    assert message.header("jobId") == job_id
    assert message.headers["x-retry-count"] == 0
    verifier = MessageVerifier([cluster.keys.internal_hmac])
    outcome = verifier.verify(
        message.headers,
        message.body,
        exchange="",
        routing_key=cluster.work_queue,
        now=None,
    )
    assert outcome is SignatureOutcome.VALID


def broker_messages(cluster: Cluster) -> list[broker.Message]:
    return eventually_sync(
        lambda: broker.read_all(cluster.amqp_url, cluster.work_queue),
        deadline_seconds=15,
        what="the work message",
    )


def check_event_and_result(
    cluster: Cluster, s3_client: S3Client, job: dict[str, str], posted: dict[str, str]
) -> None:
    [event] = cluster.events(1)
    assert event.routing_key == "job.completed"
    assert event.header("ce-id") == f"fetcher.job.completed.{posted['jobId']}"
    assert event.header("ce-source") == SOURCE
    assert event.header("X-Tenant-ID") == "single-tenant"
    verify_event(
        event.headers,
        event.body,
        cluster.exchange,
        "job.completed",
        key=cluster.keys.external_hmac,
    )
    result = json.loads(event.body)["result"]
    assert result["path"] == job["resultPath"] == f"external-data/{posted['jobId']}.json"
    assert result["rowCount"] == 1
    sealed = s3_client.get_object(Bucket=cluster.bucket, Key=result["path"])["Body"].read()
    with open_result(
        sealed,
        storage_key=cluster.keys.storage,
        hmac_key=cluster.keys.external_hmac,
        expected_hmac=result["hmac"],
        expected_size=result["sizeBytes"],
    ) as opened:
        assert opened.read() == (
            b'{"sales_db":{"orders":[{"id":9007199254741993,"total":"1100.00"}]}}'
        )


def test_a_source_that_fails_ends_the_job_with_stage_and_reason_and_an_event(
    cluster: Cluster, shop: SqlAddress
) -> None:
    with cluster.manager() as (_, api), cluster.worker() as (_, worker):
        assert api.connect(postgres_connection(shop)).status == 201
        posted = api.post_job({"sales_db": {"orders": ["id", "totl"], "nothing": ["x"]}})
        assert posted.status == 202
        job = api.wait_for_job(posted.body["jobId"])
        assert job["status"] == "failed"
        assert "orders.totl" in str(job["metadata"]["error"])
        [event] = cluster.events(1)
        assert event.routing_key == "job.failed"
        error = json.loads(event.body)["metadata"]["error"]
        assert error["code"] == "validation"
        assert "nothing" in error["message"]
        # Its message is acknowledged: a failed job leaves nothing in the dead letters.
        with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/metrics") as answer:
            metrics = answer.read().decode()
        assert "fetcher_deliveries_rejected_total{" not in metrics
        assert 'fetcher_jobs_total{outcome="failed"} 1.0' in metrics
    assert broker.read_all(cluster.amqp_url, cluster.work_queue) == []
