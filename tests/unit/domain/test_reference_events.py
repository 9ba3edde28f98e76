"""What the reference's outbox envelope says (spec worker-and-events 8.7)."""

import json
from typing import Any

import pytest

from fetcher.domain.reference_events import EnvelopeUnknown, read_reference_event
from fetcher.domain.terminal_event import EventRefused
from tests.reference_outbox import EVENT_TIME, SOURCE, an_envelope
from tests.unit.crypto.vectors import JOB_ID

ENVELOPE = an_envelope(JOB_ID)


def read(envelope: Any) -> Any:
    text = envelope if isinstance(envelope, str) else json.dumps(envelope)
    return read_reference_event(text, request_id="r-1")


def test_the_event_is_the_one_that_was_recorded() -> None:
    event = read(ENVELOPE)
    assert (event.exchange, event.routing_key) == ("fetcher.job.events", "job.completed")
    assert event.tenant == "single-tenant"
    headers = {
        name: value.decode() if isinstance(value, bytearray) else value
        for name, value in event.headers.items()
    }
    assert headers == {
        "ce-specversion": "1.0",
        "ce-id": f"fetcher.job.completed.{JOB_ID}",
        "ce-source": SOURCE,
        "ce-type": "studio.lerian.job.completed",
        "ce-time": EVENT_TIME,
        "ce-schemaversion": "1.0.0",
        "ce-resourcetype": "job",
        "ce-eventtype": "completed",
        "ce-subject": JOB_ID,
        "ce-datacontenttype": "application/json",
        "ce-tenantid": "single-tenant",
        "X-Request-Id": "r-1",
        "x-retry-count": 0,
        "X-Tenant-ID": "single-tenant",
    }


def test_the_body_keeps_its_members_their_order_and_every_digit() -> None:
    text = json.dumps(ENVELOPE).replace('"share": 0.1', '"share": 12345678901234567890.10')
    assert read(text).body == (
        b'{"jobId":"%s","metadata":{"source":"acme-reports","share":12345678901234567890.10,'
        b'"note":"a \\u003c b"},"status":"completed","result":{"path":"external-data/%s.json",'
        b'"sizeBytes":103,"rowCount":1,"hmac":"%s"}}'
        % (JOB_ID.encode(), JOB_ID.encode(), b"ab" * 32)
    )


def test_a_failed_job_of_a_tenant() -> None:
    event = read(an_envelope(JOB_ID, "failed", event={"TenantID": "tenant-a"}))
    assert (event.routing_key, event.tenant) == ("job.failed", "tenant-a")
    assert event.headers["X-Tenant-ID"] == "tenant-a"
    assert event.headers["ce-id"] == bytearray(f"fetcher.job.failed.{JOB_ID}", "ascii")


def test_the_exchange_is_the_recorded_one() -> None:
    assert read(an_envelope(JOB_ID, exchange="old.events")).exchange == "old.events"


def test_a_time_with_an_offset_is_told_in_utc() -> None:
    event = read(an_envelope(JOB_ID, event={"Timestamp": "2026-03-14T06:26:54.5-03:00"}))
    assert event.headers["ce-time"] == bytearray(b"2026-03-14T09:26:54.5Z")


@pytest.mark.parametrize(
    "envelope",
    [
        ENVELOPE | {"version": 2},
        ENVELOPE | {"transport": "kafka"},
        an_envelope(JOB_ID, event={"EventType": "progressed"}),
        ENVELOPE | {"destination": {"kind": "rabbitmq", "name": "e", "address": "job.failed"}},
    ],
)
def test_what_another_process_may_know_is_no_fault_of_the_record(envelope: object) -> None:
    with pytest.raises(EnvelopeUnknown, match=r"^unknown (version|transport|event type)$"):
        read(envelope)


@pytest.mark.parametrize(
    ("envelope", "problem"),
    [
        ("", "event envelope is not JSON"),
        ('{"version":1', "event envelope is not JSON"),
        ("[" * 5000, "event envelope is not JSON"),
        ("\ud800", "event envelope is not JSON"),
        ([], "event envelope is no object"),
        (ENVELOPE | {"destination": None}, "event destination is no object"),
        (ENVELOPE | {"event": 7}, "event event is no object"),
        (an_envelope(JOB_ID, body="text"), "event Payload is no object"),
        (an_envelope(JOB_ID, body={"x": "y" * 1_048_576}), "event body is over 1048576 bytes"),
        (an_envelope(JOB_ID, exchange=""), "event exchange is no name of an exchange"),
        (an_envelope(JOB_ID, exchange="e" * 256), "event exchange is no name of an exchange"),
        (an_envelope(JOB_ID, event={"EventID": 7}), "event EventID is no text"),
        (an_envelope(JOB_ID, event={"EventID": ""}), "event id is empty"),
        (an_envelope(JOB_ID, event={"Source": "a\nb"}), "event source holds a control character"),
        (an_envelope(JOB_ID, event={"TenantID": "a b"}), "event tenant is not of the allowed form"),
        (an_envelope(JOB_ID, event={"Timestamp": "soon"}), "event time is no time with a zone"),
        (
            an_envelope(JOB_ID, event={"Timestamp": "2026-03-14T09:26:54"}),
            "event time is no time with a zone",
        ),
        (
            an_envelope(JOB_ID, event={"Timestamp": "0001-01-01T00:00:00+10:00"}),
            "event time is no time with a zone",
        ),
    ],
)
def test_what_can_never_be_sent_is_refused_by_the_members_name(
    envelope: object, problem: str
) -> None:
    with pytest.raises(EventRefused) as refused:
        read(envelope)
    assert str(refused.value) == problem
    assert refused.value.__context__ is None or refused.value.__suppress_context__
