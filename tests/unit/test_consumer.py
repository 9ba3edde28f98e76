"""What consumers of events rely on: spec worker-and-events 10.2, vectors of 10.3."""

import pytest

from fetcher.consumer import (
    EventRejected,
    ResultRejected,
    SignatureOutcome,
    derive_keys,
    open_result,
    verify_event,
)
from fetcher.crypto.keys import MasterKeyTooShort
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
