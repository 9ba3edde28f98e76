"""Terminal events: spec worker-and-events 8.2 to 8.4; table 12.6 rows E1 to E4, E11, E13, E17."""

import json
from datetime import timedelta, timezone

import pytest
from cloudevents.core.bindings import rabbitmq

from fetcher.consumer import verify_event
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.jobs import EventMark, FailureFacts
from fetcher.domain.terminal_event import (
    JOB_CANCELLED,
    EventRefused,
    completed_mark,
    event_body,
    event_headers,
    event_routing_key,
    failed_mark,
    failure_message,
)
from tests.unit.crypto import vectors
from tests.unit.domain.builders import COMPLETED_AT, JOB_ID, a_job, result_facts

SOURCE = "//acme.fetcher/worker-1"
FAILURE = FailureFacts(
    message="sales_db: connect failed at tls: certificate expired",
    code="connect",
    source="sales_db",
    stage="tls",
    reason="certificate expired",
)


def a_completed_mark(*, execution_ms: int = 812, row_count: int = 1) -> EventMark:
    job = a_job(metadata={"source": "acme-reports", "correlationId": "c-42"})
    return completed_mark(
        job,
        result_facts(row_count=row_count),
        completed_at=COMPLETED_AT,
        execution_ms=execution_ms,
    )


def test_a_completed_job_says_what_the_documented_body_says() -> None:
    mark = a_completed_mark()
    # the key version is ours (design section 4); without it the bytes are those of the vector
    assert mark.payload.replace(',"keyVersion":"1"', "") == vectors.COMPLETED_BODY.decode()
    assert json.loads(mark.payload)["result"]["protection"]["keyVersion"] == "1"
    assert (mark.status, mark.time) == ("completed", COMPLETED_AT)
    assert event_routing_key(mark) == "job.completed"


def test_zero_rows_and_zero_milliseconds_are_sent() -> None:
    body = json.loads(a_completed_mark(execution_ms=0, row_count=0).payload)
    assert (body["result"]["rowCount"], body["executionTimeMs"]) == (0, 0)


def test_the_completion_time_is_written_in_utc() -> None:
    local = COMPLETED_AT.astimezone(timezone(timedelta(hours=-3)))
    mark = completed_mark(a_job(), result_facts(), completed_at=local, execution_ms=1)
    assert json.loads(mark.payload)["completedAt"] == "2026-03-14T09:26:54.312Z"


def test_a_job_without_metadata_sends_an_empty_object() -> None:
    # E3
    mark = completed_mark(
        a_job(metadata={}), result_facts(), completed_at=COMPLETED_AT, execution_ms=1
    )
    assert json.loads(mark.payload)["metadata"] == {}


def test_a_failed_job_has_its_reasons_and_nothing_of_a_result() -> None:
    # E2
    mark = failed_mark(a_job(), FAILURE, at=COMPLETED_AT)
    assert json.loads(mark.payload) == {
        "jobId": str(JOB_ID),
        "metadata": {
            "error": {
                "message": "sales_db: connect failed at tls: certificate expired",
                "code": "connect",
                "source": "sales_db",
                "stage": "tls",
                "reason": "certificate expired",
            },
            "source": "acme-reports",
        },
        "status": "failed",
    }
    assert event_routing_key(mark) == "job.failed"


def test_the_documented_failed_body_is_the_message_part_of_ours() -> None:
    text = "engine extraction: connect failed: dial tcp 10.2.3.4:5432: i/o timeout"
    mark = failed_mark(a_job(), FailureFacts(message=text, code="connect"), at=COMPLETED_AT)
    assert mark.payload.replace(',"code":"connect"', "") == vectors.FAILED_BODY.decode()


def test_a_cancelled_job_is_a_failed_one_to_old_consumers() -> None:
    mark = failed_mark(a_job(), JOB_CANCELLED, at=COMPLETED_AT)
    assert mark.status == "failed"
    assert json.loads(mark.payload)["metadata"]["error"] == {
        "message": "job cancelled",
        "code": "cancelled",
    }


def test_reserved_metadata_never_reaches_an_event() -> None:
    job = a_job(
        metadata={"error": "mine", "terminalEventPending": True, "terminalEventX": 1, "a": 1}
    )
    completed = completed_mark(job, result_facts(), completed_at=COMPLETED_AT, execution_ms=1)
    assert json.loads(completed.payload)["metadata"] == {"a": 1}
    failed = json.loads(failed_mark(job, FAILURE, at=COMPLETED_AT).payload)
    assert set(failed["metadata"]) == {"a", "error"}
    assert failed["metadata"]["error"]["message"] == FAILURE.message


def test_the_headers_are_a_cloud_event_for_its_own_sdk() -> None:
    # E1
    mark = a_completed_mark()
    headers = event_headers(JOB_ID, mark, source=SOURCE, request_id="r-1")
    as_text = {
        name: value.decode() for name, value in headers.items() if isinstance(value, bytearray)
    }
    event = rabbitmq.from_binary_event(
        rabbitmq.RabbitMQMessage(
            headers=as_text, content_type="application/json", body=event_body(mark)
        )
    )
    assert (event.get_specversion(), event.get_type()) == ("1.0", "studio.lerian.job.completed")
    assert event.get_id() == f"fetcher.job.completed.{JOB_ID}"
    assert event.get_source() == SOURCE
    assert event.get_subject() == str(JOB_ID)
    assert event.get_time() == COMPLETED_AT
    assert event.get_datacontenttype() == "application/json"
    extensions = ("schemaversion", "resourcetype", "eventtype", "tenantid")
    assert [event.get_extension(name) for name in extensions] == [
        "1.0.0",
        "job",
        "completed",
        "single-tenant",
    ]
    assert event.get_data() == json.loads(mark.payload)


def test_the_headers_have_the_documented_amqp_types() -> None:
    headers = event_headers(JOB_ID, a_completed_mark(), source=SOURCE, request_id="r-1")
    assert {name: type(value) for name, value in headers.items()} == {
        **dict.fromkeys(
            (
                "ce-specversion",
                "ce-id",
                "ce-source",
                "ce-type",
                "ce-time",
                "ce-schemaversion",
                "ce-resourcetype",
                "ce-eventtype",
                "ce-subject",
                "ce-datacontenttype",
                "ce-tenantid",
            ),
            bytearray,
        ),
        "X-Request-Id": str,
        "x-retry-count": int,
        "X-Tenant-ID": str,
    }
    assert (headers["x-retry-count"], headers["X-Tenant-ID"]) == (0, "single-tenant")


def test_a_signed_event_is_accepted_by_a_consumer() -> None:
    key = vectors.ring().current.external_hmac
    mark = failed_mark(a_job(), FAILURE, at=COMPLETED_AT)
    headers = event_headers(JOB_ID, mark, source=SOURCE, request_id="r-1", tenant="tenant-a")
    signature = MessageSigner(key).headers(
        tenant="tenant-a",
        body=event_body(mark),
        exchange="fetcher.job.events",
        routing_key=event_routing_key(mark),
        timestamp=vectors.EVENT_TIME,
    )
    verify_event({**headers, **signature}, event_body(mark), routing_key="job.failed", key=key)


def test_a_repeated_event_differs_in_its_request_id_only() -> None:
    # E4
    mark = a_completed_mark()
    first = event_headers(JOB_ID, mark, source=SOURCE, request_id="r-1")
    second = event_headers(JOB_ID, mark, source=SOURCE, request_id="r-2")
    assert {name for name in first if first[name] != second[name]} == {"X-Request-Id"}


def test_a_body_over_1_mib_is_refused_and_the_mark_is_not() -> None:
    # E11: the job becomes terminal all the same
    fits, over = (
        EventMark(status="completed", payload="x" * size, time=COMPLETED_AT)
        for size in (1_048_576, 1_048_577)
    )
    assert len(event_body(fits)) == 1_048_576
    with pytest.raises(EventRefused) as refused:
        event_body(over)
    assert refused.value.field == "body"
    job = a_job(metadata={"source": "s", "large": "é" * 1_048_576})
    mark = failed_mark(job, FAILURE, at=COMPLETED_AT)
    with pytest.raises(EventRefused):
        event_body(mark)


@pytest.mark.parametrize("tenant", ["", "a b", "a/b", "-a", "_a", "é", "a\n", "x" * 257])
def test_a_tenant_of_another_form_is_refused(tenant: str) -> None:
    # E13
    with pytest.raises(EventRefused) as refused:
        event_headers(JOB_ID, a_completed_mark(), source=SOURCE, request_id="r", tenant=tenant)
    assert refused.value.field == "tenant"


@pytest.mark.parametrize("tenant", ["a", "0", "tenant-A_1", "x" * 256])
def test_a_tenant_of_the_allowed_form_is_sent(tenant: str) -> None:
    headers = event_headers(
        JOB_ID, a_completed_mark(), source=SOURCE, request_id="r", tenant=tenant
    )
    assert headers["X-Tenant-ID"] == tenant
    assert headers["ce-tenantid"] == bytearray(tenant.encode())


@pytest.mark.parametrize("source", ["", "a\x00", "a\n", "\x7f", "x" * 2049, "é" * 1025])
def test_a_source_beyond_the_limits_is_refused(source: str) -> None:
    with pytest.raises(EventRefused) as refused:
        event_headers(JOB_ID, a_completed_mark(), source=source, request_id="r")
    assert refused.value.field == "source"


@pytest.mark.parametrize("source", ["x" * 2048, "é" * 1024])
def test_a_source_within_the_limits_is_sent_verbatim(source: str) -> None:
    headers = event_headers(JOB_ID, a_completed_mark(), source=source, request_id="r")
    assert headers["ce-source"] == bytearray(source.encode())


@pytest.mark.parametrize(
    ("config", "stage", "reason", "text"),
    [
        (
            "sales_db",
            "tls",
            "certificate expired",
            "sales_db: connect failed at tls: certificate expired",
        ),
        ("sales_db", "dns", "not_found", "sales_db: connect failed at dns: not found"),
        ("sales_db", "query", "timeout", "sales_db: query failed: timeout"),
        (None, "storage", "unavailable", "storage failed: unavailable"),
        ("sales_db", None, "schema changed", "sales_db: schema changed"),
        (None, "query", "dial tcp 1.2.3.4:5", "query failed: dial tcp [redacted]"),
    ],
)
def test_a_failure_is_told_in_safe_parts(
    config: str | None, stage: str | None, reason: str, text: str
) -> None:
    assert failure_message(config=config, stage=stage, reason=reason) == text


def test_a_place_is_named_as_it_is() -> None:
    message = failure_message(
        config="sales_db", stage="query", reason="invalid_filter_value", place="orders.placed_at"
    )
    assert message == "sales_db: query failed: invalid filter value (orders.placed_at)"


def test_a_schema_mismatch_names_the_missing_tables_and_fields() -> None:
    message = failure_message(
        config="sales_db",
        stage="schema",
        reason="mismatch",
        missing_tables=["zeta", "alpha"],
        missing_fields={"orders": ["total", "id"], "a": ["b"]},
    )
    assert message == (
        "sales_db: schema mismatch: missing tables alpha, zeta; "
        "missing fields a.b, orders.id, orders.total"
    )
    many = failure_message(
        config="db",
        stage="schema",
        reason="mismatch",
        missing_tables=[f"t{number:03}" for number in range(25)],
    )
    assert many.endswith("t018, t019 and 5 more")
