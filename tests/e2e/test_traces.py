"""One trace from the request to the event, over two processes and the broker."""

import json
import signal
import urllib.request
from pathlib import Path

from tests.e2e.cluster import PRODUCT, Api, Cluster, embedded, postgres_connection
from tests.e2e.failing_view import ROW
from tests.servers.addresses import SqlAddress
from tests.servers.otlp_double import otlp_double

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
CANARY = "canary-5ecret"
FIELDS = {"sales_db": {"orders": ["id", "total"]}}


def post_traced(api: Api) -> str:
    """A job with a secret in its filter and among its metadata."""
    body = {
        "dataRequest": {
            "mappedFields": FIELDS,
            "filters": {"sales_db": {"orders": {"note": {"ne": [CANARY]}}}},
        },
        "metadata": {"source": PRODUCT, "note": CANARY},
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{api.port}/v1/fetcher",
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "X-Product-Name": PRODUCT,
            "traceparent": PARENT,
            "tracestate": "acme=1",
            "Authorization": f"Bearer {CANARY}",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own process
        return str(json.loads(answer.read())["jobId"])


def test_one_trace_from_the_request_to_the_event(cluster: Cluster, shop: SqlAddress) -> None:
    with otlp_double() as collector:
        cluster.changes = {
            "ENABLE_TELEMETRY": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {CANARY}",
            "OTEL_TRUST_INBOUND_TRACE_CONTEXT": "true",
        }
        with cluster.manager() as (manager, api), cluster.worker() as (worker, _):
            connected = api.connect(postgres_connection(shop, password=shop.password or CANARY))
            assert connected.status == 201
            job_id = post_traced(api)
            assert api.wait_for_job(job_id)["status"] == "completed"
            [event] = cluster.events(1)
            for process in (manager, worker):
                process.send(signal.SIGTERM)
                assert process.wait_exit(deadline_seconds=40) == 0
        spans = [each for each in collector.spans() if each.trace_id == TRACE]
        assert set(collector.paths) == {"/v1/traces"}
        assert all(each["authorization"] == f"Bearer {CANARY}" for each in collector.headers)
        assert not any(CANARY.encode() in body for body in collector.bodies)

    by_name = {each.name: each for each in spans}
    by_id = {each.span_id: each for each in spans}

    def above(name: str) -> str:
        parent = by_name[name].parent_id
        return by_id[parent].name if parent in by_id else parent

    assert above("POST /v1/fetcher") == "b7ad6b7169203331"
    assert above("service.create_fetcher_job") == "POST /v1/fetcher"
    assert above("adapter.rabbitmq.produce") == "service.create_fetcher_job"
    assert above("rabbitmq.consumer.handle_message") == "adapter.rabbitmq.produce"
    assert above("service.claim_job") == "rabbitmq.consumer.handle_message"
    assert above("service.extract_external_data") == "rabbitmq.consumer.handle_message"
    assert above("engine.extraction.execute") == "service.extract_external_data"
    assert above("postgresql.data_source.query") == "engine.extraction.execute"
    assert (
        above("service.extract_external_data.save_external_data") == "service.extract_external_data"
    )
    assert above("service.settle_job") == "rabbitmq.consumer.handle_message"
    assert above("outbox.dispatcher.dispatch_once") == "service.create_fetcher_job"
    assert by_name["POST /v1/fetcher"].service == "fetcher"
    assert by_name["service.claim_job"].service == "fetcher-worker"
    assert by_name["service.claim_job"].attributes["fetcher.job.id"] == job_id
    assert by_name["service.extract_external_data"].attributes["fetcher.result.rows"] == 1000

    told = f"00-{TRACE}-{by_name['outbox.dispatcher.dispatch_once'].span_id}-01"
    assert event.header("traceparent") == event.header("Traceparent") == told
    assert event.header("tracestate") == event.header("Tracestate") == "acme=1"
    assert isinstance(event.headers["Traceparent"], str)
    assert isinstance(event.headers["traceparent"], bytes | bytearray)


def test_a_query_that_the_server_breaks_off_is_told_as_failed(
    tmp_path: Path, broken: SqlAddress
) -> None:
    """By a code, and without the row that the server's text holds."""
    with otlp_double() as collector:
        changes = {
            "ENABLE_TELEMETRY": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
            "DATASOURCE_INCLUDE_VIEWS": "true",
        }
        with embedded(tmp_path, **changes) as (process, api):
            assert api.connect(postgres_connection(broken)).status == 201
            posted = api.post_job({"sales_db": {"numbers": ["id", "n"]}})
            job = api.wait_for_job(posted.body["jobId"])
            assert job["status"] == "failed"
            process.send(signal.SIGTERM)
            assert process.wait_exit(deadline_seconds=40) == 0
        failed = {each.name: each for each in collector.spans() if each.has_failed}
        assert not any(ROW.encode() in body for body in collector.bodies)
    assert failed["postgresql.data_source.query"].attributes["error.type"] == job["error"]["reason"]
    assert set(failed) == {
        "postgresql.data_source.query",
        "engine.extraction.execute",
        "service.extract_external_data",
    }


def test_off_nothing_is_imported_and_nothing_is_sent(tmp_path: Path) -> None:
    """The stand-in for the command refuses every import of the library."""
    with (
        otlp_double() as collector,
        embedded(
            tmp_path,
            module="tests.e2e.without_opentelemetry",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
            PYTHONPATH=str(Path(__file__).parents[2]),
        ) as (process, api),
    ):
        assert api.call("GET", "/v1/fetcher").status == 200
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=30) == 0
        assert collector.bodies == []


def test_on_without_the_extra_the_start_is_refused_by_its_name(tmp_path: Path) -> None:
    from tests.e2e.without_opentelemetry import refused_start  # noqa: PLC0415 - blocks imports

    code, text = refused_start(tmp_path)
    assert code == 1
    assert "ENABLE_TELEMETRY: needs the extra: in a checkout, pip install '.[telemetry]'" in text
