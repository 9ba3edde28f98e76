"""What consumers of events rely on: spec worker-and-events 10.2, vectors of 10.3."""

import json

import pytest

from fetcher.consumer import (
    EventMalformed,
    EventRejected,
    JobEvent,
    ResultRejected,
    SignatureOutcome,
    derive_keys,
    open_result,
    verify_event,
)
from fetcher.crypto.keys import MasterKeyTooShort
from fetcher.crypto.signer import MessageSigner
from tests.unit.crypto import vectors

KEYS = derive_keys(vectors.APP_ENC_KEY)
COMPLETED_HEADERS = {
    "x-message-signature": vectors.COMPLETED_SIGNATURE,
    "t": str(vectors.EVENT_TIME),
    "signature-version": "v1",
    "X-Tenant-ID": "single-tenant",
    "ce-id": bytearray(b"fetcher.job.completed." + vectors.JOB_ID.encode()),
    "x-retry-count": 0,
}


def test_a_signed_event_is_accepted_however_late() -> None:
    verify_event(
        COMPLETED_HEADERS,
        vectors.COMPLETED_BODY,
        "fetcher.job.events",
        "job.completed",
        key=KEYS.external_hmac,
    )


def test_exchange_and_key_default_to_those_of_a_completed_job() -> None:
    verify_event(COMPLETED_HEADERS, vectors.COMPLETED_BODY, key=KEYS.external_hmac)


@pytest.mark.parametrize("as_bytes", [bytes, bytearray, memoryview])
def test_header_values_may_be_bytes(
    as_bytes: type[bytes] | type[bytearray] | type[memoryview],
) -> None:
    headers = {
        name: as_bytes(value.encode()) if isinstance(value, str) else value
        for name, value in COMPLETED_HEADERS.items()
    }
    verify_event(headers, vectors.COMPLETED_BODY, key=KEYS.external_hmac)


def test_an_event_of_a_failed_job_of_a_tenant_is_accepted() -> None:
    headers = {
        **COMPLETED_HEADERS,
        "x-message-signature": vectors.FAILED_SIGNATURE,
        "X-Tenant-ID": "tenant-a",
        "ce-id": f"fetcher.job.failed.{vectors.JOB_ID}",
    }
    verify_event(headers, vectors.FAILED_BODY, routing_key="job.failed", key=KEYS.external_hmac)


def test_an_event_under_a_previous_key_is_accepted() -> None:
    verify_event(
        COMPLETED_HEADERS,
        vectors.COMPLETED_BODY,
        key=bytes(32),
        previous_keys=[KEYS.external_hmac],
    )


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"X-Tenant-ID": "tenant-a"}, SignatureOutcome.FAILED),
        ({"signature-version": "v2"}, SignatureOutcome.UNSUPPORTED_VERSION),
        ({"t": None}, SignatureOutcome.MISSING_HEADERS),
        ({"x-message-signature": b"\xff\xfe"}, SignatureOutcome.FAILED),
    ],
)
def test_a_changed_event_is_rejected_with_the_reason(
    changes: dict[str, object], outcome: SignatureOutcome
) -> None:
    with pytest.raises(EventRejected) as rejected:
        verify_event(
            {**COMPLETED_HEADERS, **changes}, vectors.COMPLETED_BODY, key=KEYS.external_hmac
        )
    assert rejected.value.outcome is outcome


def test_another_route_is_rejected() -> None:
    with pytest.raises(EventRejected):
        verify_event(
            COMPLETED_HEADERS,
            vectors.COMPLETED_BODY,
            "fetcher.dlx",
            "fetcher.dlq.key",
            key=KEYS.external_hmac,
        )


def test_a_consumer_may_ask_for_freshness() -> None:
    def judged(now: float) -> None:
        verify_event(
            COMPLETED_HEADERS,
            vectors.COMPLETED_BODY,
            key=KEYS.external_hmac,
            now=now,
            max_age_seconds=300,
        )

    judged(vectors.EVENT_TIME + 300)
    for now, outcome in (
        (vectors.EVENT_TIME + 301, SignatureOutcome.EXPIRED),
        (vectors.EVENT_TIME - 31, SignatureOutcome.FROM_FUTURE),
    ):
        with pytest.raises(EventRejected) as rejected:
            judged(now)
        assert rejected.value.outcome is outcome


def test_the_named_result_opens() -> None:
    with open_result(
        [vectors.RESULT_OBJECT[:50], vectors.RESULT_OBJECT[50:]],
        storage_key=KEYS.storage,
        hmac_key=KEYS.external_hmac,
        expected_hmac=vectors.RESULT_HMAC,
        expected_size=103,
    ) as result:
        assert result.read() == vectors.RESULT_PLAINTEXT


def test_another_result_is_rejected() -> None:
    with pytest.raises(ResultRejected, match="result rejected: wrong hmac"):
        open_result(
            vectors.RESULT_OBJECT,
            storage_key=KEYS.storage,
            hmac_key=KEYS.external_hmac,
            expected_hmac="0" * 64,
            expected_size=103,
        )


def test_keys_come_from_the_master_text() -> None:
    assert vectors.ring().current == KEYS
    with pytest.raises(MasterKeyTooShort):
        derive_keys("AAAA")


def test_a_verified_event_tells_what_its_signed_body_says() -> None:
    event = verify_event(
        {**COMPLETED_HEADERS, "ce-source": bytearray(b"//acme.fetcher/worker-1")},
        vectors.COMPLETED_BODY,
        key=KEYS.external_hmac,
    )
    assert event.id == f"fetcher.job.completed.{vectors.JOB_ID}"
    assert (event.status, event.job_id, event.tenant) == (
        "completed",
        vectors.JOB_ID,
        "single-tenant",
    )
    assert event.metadata == {"correlationId": "c-42", "source": "acme-reports"}
    assert (event.source, event.time, event.error) == ("//acme.fetcher/worker-1", "", None)
    assert event.result is not None
    assert event.result.path == f"external-data/{vectors.JOB_ID}.json"
    assert event.result.hmac == vectors.RESULT_HMAC
    assert (event.result.size_bytes, event.result.row_count) == (103, 1)
    assert event.result.key_version == ""


def test_a_failed_event_has_its_error_and_no_result() -> None:
    event = signed_event({"jobId": "j", "status": "failed", "metadata": {"error": {"code": "x"}}})
    assert (event.id, event.result, event.error) == ("fetcher.job.failed.j", None, {"code": "x"})


RESULT = {"path": "p", "hmac": "0" * 64, "sizeBytes": 2, "protection": {"keyVersion": "2026-01"}}
COMPLETED = {"jobId": "j", "status": "completed", "metadata": {}, "result": RESULT}


def signed_event(body: object, **headers: object) -> JobEvent:
    """Signed with our key, whatever it says."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    status = body.get("status") if isinstance(body, dict) else "completed"
    route = "job.failed" if status == "failed" else "job.completed"
    signed = MessageSigner(KEYS.external_hmac).headers(
        tenant="", body=text, exchange="fetcher.job.events", routing_key=route, timestamp=1
    )
    return verify_event({**signed, **headers}, text, routing_key=route, key=KEYS.external_hmac)


def test_what_the_reference_leaves_out_is_zero_and_ours_names_the_key() -> None:
    event = signed_event(COMPLETED)
    assert event.result is not None
    assert (event.result.row_count, event.result.key_version) == (0, "2026-01")
    without = signed_event({name: v for name, v in COMPLETED.items() if name != "metadata"})
    assert without.metadata == {}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[]", "the body is no object"),
        (COMPLETED | {"jobId": 7}, "jobId is no text"),
        (COMPLETED | {"status": "running"}, "the status is not that of the routing key"),
        (COMPLETED | {"metadata": []}, "metadata is no object"),
        (COMPLETED | {"result": None}, "result is no object"),
        (COMPLETED | {"result": RESULT | {"path": ""}}, "path is no text"),
        (COMPLETED | {"result": RESULT | {"hmac": "F" * 64}}, "hmac is no HMAC-SHA256"),
        (COMPLETED | {"result": RESULT | {"sizeBytes": -1}}, "sizeBytes is no count"),
        (COMPLETED | {"result": RESULT | {"rowCount": True}}, "rowCount is no count"),
        (COMPLETED | {"result": RESULT | {"protection": 1}}, "protection is no object"),
        (
            {"jobId": "j", "status": "failed", "metadata": {"error": "text"}},
            "metadata.error is no object",
        ),
    ],
)
def test_a_signed_message_that_is_no_event_is_malformed(body: object, problem: str) -> None:
    with pytest.raises(EventMalformed) as malformed:
        signed_event(body)
    assert str(malformed.value) == f"event rejected: {problem}"
    assert malformed.value.outcome is SignatureOutcome.VALID
    assert malformed.value.__context__ is None


def test_an_id_that_is_not_the_bodys_is_refused_so_that_no_event_looks_like_many() -> None:
    assert signed_event(COMPLETED, **{"ce-id": b"fetcher.job.completed.j"}).id.endswith(".j")
    with pytest.raises(EventMalformed, match="ce-id is not that of the job and its status"):
        signed_event(COMPLETED, **{"ce-id": b"fetcher.job.completed.k"})


def test_a_body_beyond_the_wires_bound_is_not_looked_at() -> None:
    with pytest.raises(EventRejected, match="the body is over 1048576 bytes"):
        verify_event({}, bytes(1_048_577), key=KEYS.external_hmac)
