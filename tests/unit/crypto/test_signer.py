"""Signatures: spec worker-and-events section 3, table 12.1 rows S1 to S18, vectors of 10.3."""

import hashlib
import hmac

import pytest

from fetcher.crypto.signer import (
    MessageSigner,
    MessageVerifier,
    SignatureOutcome,
    SigningKeyTooShort,
    canonical_payload,
)
from tests.unit.crypto import vectors
from tests.unit.crypto.signing import (
    FAILED,
    KEY,
    MISSING,
    MULLER_BODY,
    VALID,
    judged,
    signed,
)
from tests.unit.crypto.vectors import JOB_ID, WORK_BODY, WORK_QUEUE, WORK_TIME


@pytest.mark.parametrize(
    ("tenant", "body", "signature"),
    [
        ("", WORK_BODY, vectors.WORK_SIGNATURE),
        (
            "tenant-a",
            WORK_BODY,
            "f5f27f21e35d257be4e47b81d6536e322c002f6a7aa4172269fb24066e0be9a7",
        ),
        (
            "tenant-a",
            MULLER_BODY,
            "c70a70dd3b12b071cb94ac9b2bd478c9afb1387698bf84513f1b5ea038ce5977",
        ),
    ],
)
def test_work_messages_are_signed_as_in_the_vectors(
    tenant: str, body: bytes, signature: str
) -> None:
    # S1
    headers = signed(tenant, body)
    assert headers == {
        "x-message-signature": signature,
        "t": "1773480413",
        "signature-version": "v1",
        **({"X-Tenant-ID": tenant} if tenant else {}),
    }
    assert judged(headers, body=body) is VALID


def test_a_message_without_job_id_is_signed_as_in_the_vectors() -> None:
    body = b'{"mappedFields":{}}'
    headers = MessageSigner(KEY).headers(
        tenant="", body=body, exchange="ex", routing_key="rk", timestamp=1700000000
    )
    assert (
        headers["x-message-signature"]
        == "61bb01062f2d702c3b5b069d886c54ef4c862d892a60c1d9957241e21f59f1ab"
    )
    assert judged(headers, body=body, exchange="ex", routing_key="rk", now=1700000001) is VALID


@pytest.mark.parametrize(
    ("tenant", "body", "routing_key", "signature"),
    [
        ("single-tenant", vectors.COMPLETED_BODY, "job.completed", vectors.COMPLETED_SIGNATURE),
        ("tenant-a", vectors.FAILED_BODY, "job.failed", vectors.FAILED_SIGNATURE),
    ],
)
def test_events_are_signed_as_in_the_vectors(
    tenant: str, body: bytes, routing_key: str, signature: str
) -> None:
    signer = MessageSigner(vectors.ring().current.external_hmac)
    assert signature == signer.sign(
        tenant=tenant,
        body=body,
        exchange=vectors.EVENTS_EXCHANGE,
        routing_key=routing_key,
        timestamp=vectors.EVENT_TIME,
    )


def test_the_vector_bodies_are_the_documented_bytes() -> None:
    assert (len(WORK_BODY), hashlib.sha256(WORK_BODY).hexdigest()) == (
        176,
        "bc4660c8720bd1904fc2e3b1988d51ca18b99fa4d790e3fc9b9a7350b66f705e",
    )
    assert (len(vectors.COMPLETED_BODY), hashlib.sha256(vectors.COMPLETED_BODY).hexdigest()) == (
        585,
        "4e8993fec67f86a68520cffdf4aa559cb9a8bfdebe61c4b227dab23d7ec71355",
    )
    assert (len(vectors.FAILED_BODY), len(MULLER_BODY)) == (192, 164)


def test_the_canonical_payload_is_the_documented_bytes() -> None:
    payload = canonical_payload(
        timestamp=WORK_TIME, tenant="", body=WORK_BODY, exchange="", routing_key=WORK_QUEUE
    )
    head = f"1773480413\nv1\n\n{JOB_ID}\n\n{WORK_QUEUE}\n".encode()
    assert payload == head + WORK_BODY
    assert len(payload) == 265
    assert (
        hashlib.sha256(payload).hexdigest()
        == "8f42bf90741cee17d06b8bf4f1bb52e0e034eaa28d0fbf883dd0d1d4cf0db3b9"
    )


@pytest.mark.parametrize(
    ("sent", "received"),
    [("tenant-a", "tenant-b"), ("", "tenant-a"), ("tenant-a", None), ("tenant-a", b"tenant-a")],
)
def test_another_tenant_fails(sent: str, received: object) -> None:
    # S2
    headers = signed(sent)
    headers.pop("X-Tenant-ID", None)
    if received is not None:
        headers["X-Tenant-ID"] = received
    assert judged(headers) is FAILED


def test_another_route_or_body_fails() -> None:
    # S3
    headers = signed()
    assert judged(headers, exchange="x") is FAILED
    assert judged(headers, routing_key="other") is FAILED
    for place in range(0, len(WORK_BODY), 7):
        changed = bytearray(WORK_BODY)
        changed[place] ^= 1
        assert judged(headers, body=bytes(changed)) is FAILED


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (10, VALID),
        (30, VALID),
        (30.5, SignatureOutcome.FROM_FUTURE),
        (31, SignatureOutcome.FROM_FUTURE),
        (600, SignatureOutcome.FROM_FUTURE),
    ],
)
def test_a_signature_from_the_future_is_known(ahead: float, expected: SignatureOutcome) -> None:
    # S4
    assert judged(signed(), now=WORK_TIME - ahead) is expected


@pytest.mark.parametrize(
    ("age", "max_age_seconds", "expected"),
    [
        (299, 300, VALID),
        (300, 300, VALID),
        (301, 300, SignatureOutcome.EXPIRED),
        (301, 0, VALID),
        (10**7, None, VALID),  # decision "Work message older than 5 minutes": age never decides
    ],
)
def test_the_age_decides_only_where_the_receiver_wants_it(
    age: float, max_age_seconds: float | None, expected: SignatureOutcome
) -> None:
    # S5
    outcome = judged(signed(), now=WORK_TIME + age, max_age_seconds=max_age_seconds)
    assert outcome is expected


def test_without_a_clock_no_time_is_judged() -> None:
    headers = signed()
    assert judged(headers, now=None, max_age_seconds=1) is VALID


@pytest.mark.parametrize("name", ["x-message-signature", "t", "signature-version"])
def test_a_missing_header_is_missing(name: str) -> None:
    # S6
    headers = signed()
    del headers[name]
    assert judged(headers) is MISSING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-message-signature", 7),
        ("x-message-signature", b"00"),
        ("signature-version", 1),
        ("t", 1773480413.0),
        ("t", True),
        ("t", None),
        ("t", b"1773480413"),
    ],
)
def test_a_header_of_another_type_is_missing(name: str, value: object) -> None:
    # S7, S9
    assert judged({**signed(), name: value}) is MISSING


@pytest.mark.parametrize(
    "stamp",
    [
        *("abc", "", " 1773480413", "1773480413 ", "1_773_480_413", "0x10", "1773480413.0"),
        *("١٢", "+", "9" * 19, "-" + "9" * 19, 2**63, -(2**63) - 1),
        pytest.param("9" * 5000, id="5000 digits"),
    ],
)
def test_an_unreadable_time_fails(stamp: object) -> None:
    # S8; beyond int64 is unreadable too
    assert judged({**signed(), "t": stamp}, now=None) is FAILED


@pytest.mark.parametrize(
    "stamp",
    [
        WORK_TIME,
        "+1773480413",
        "0001773480413",
        pytest.param("0" * 5000 + "1773480413", id="5000 zeros"),
    ],
)
def test_a_time_counts_by_its_value(stamp: object) -> None:
    # S9: any integer, since Python's decoders do not tell the width
    assert judged({**signed(), "t": stamp}) is VALID


@pytest.mark.parametrize("version", ["v2", "", "V1", "v1 "])
def test_another_version_is_unsupported(version: str) -> None:
    # S10
    outcome = judged({**signed(), "signature-version": version})
    assert outcome is SignatureOutcome.UNSUPPORTED_VERSION


def test_the_time_is_judged_before_the_version() -> None:
    headers = {**signed(), "signature-version": "v2"}
    assert judged(headers, now=WORK_TIME + 301) is SignatureOutcome.EXPIRED
    assert judged({**headers, "t": "abc"}) is FAILED


@pytest.mark.parametrize("signature", [vectors.WORK_SIGNATURE.upper(), "", "é" * 64, "\ud800"])
def test_another_signature_text_fails(signature: str) -> None:
    # S11
    assert judged({**signed(), "x-message-signature": signature}) is FAILED


@pytest.mark.parametrize("tenant", [None, "tenant-a"])
def test_a_legacy_signature_counts_only_where_it_is_allowed(tenant: str | None) -> None:
    # S12
    headers = {**signed(), "x-message-signature": vectors.WORK_LEGACY_SIGNATURE}
    if tenant:
        headers["X-Tenant-ID"] = tenant
    assert judged(headers) is FAILED
    assert judged(headers, allow_legacy=True) is SignatureOutcome.VALID_LEGACY
    assert judged(headers, allow_legacy=True, body=WORK_BODY + b" ") is FAILED
    # S13: steps 2 to 7 still apply
    late = judged(headers, allow_legacy=True, now=WORK_TIME + 301)
    assert late is SignatureOutcome.EXPIRED


def test_only_valid_outcomes_are_valid() -> None:
    valid = [outcome for outcome in SignatureOutcome if outcome.is_valid]
    assert valid == [SignatureOutcome.VALID, SignatureOutcome.VALID_LEGACY]


def test_a_signing_key_has_at_least_32_bytes() -> None:
    # S14
    for accepted in (32, 64):
        assert MessageSigner(bytes(accepted)).sign(
            tenant="", body=b"", exchange="", routing_key="", timestamp=0
        )
    with pytest.raises(SigningKeyTooShort) as refused:
        MessageSigner(bytes(31))
    assert str(refused.value) == "signing key too short: got 31 bytes, minimum 32 required"
    with pytest.raises(SigningKeyTooShort):
        MessageVerifier([KEY, bytes(31)])


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (WORK_TIME + 9.999, SignatureOutcome.VALID),
        (WORK_TIME + 10, SignatureOutcome.PREVIOUS_KEY_ENDED),
        (WORK_TIME + 86_400, SignatureOutcome.PREVIOUS_KEY_ENDED),
        (None, SignatureOutcome.VALID),
    ],
)
@pytest.mark.parametrize("allow_legacy", [True, False])
def test_a_former_key_counts_before_its_end_alone(
    now: float | None, expected: SignatureOutcome, allow_legacy: bool
) -> None:
    """The current one has none, and a stranger's key is never one that has ended."""
    current, former, strange = (bytes([n]) * 32 for n in range(3))
    verifier = MessageVerifier(
        [current, former], previous_until=WORK_TIME + 10, allow_legacy=allow_legacy
    )

    def outcome(key: bytes) -> SignatureOutcome:
        headers = MessageSigner(key).headers(
            tenant="", body=WORK_BODY, exchange="", routing_key=WORK_QUEUE, timestamp=WORK_TIME
        )
        return verifier.verify(headers, WORK_BODY, exchange="", routing_key=WORK_QUEUE, now=now)

    assert [outcome(key) for key in (current, former, strange)] == [VALID, expected, FAILED]
    assert not SignatureOutcome.PREVIOUS_KEY_ENDED.is_valid


def test_a_body_s_signature_by_a_former_key_ends_with_it() -> None:
    current, former = b"c" * 32, b"f" * 32
    verifier = MessageVerifier([current, former], previous_until=WORK_TIME + 10, allow_legacy=True)
    headers = {
        "x-message-signature": hmac.new(
            former, b"%d.%s" % (WORK_TIME, WORK_BODY), hashlib.sha256
        ).hexdigest(),
        "t": str(WORK_TIME),
        "signature-version": "v1",
    }
    for now, expected in (
        (WORK_TIME + 9, SignatureOutcome.VALID_LEGACY),
        (WORK_TIME + 10, SignatureOutcome.PREVIOUS_KEY_ENDED),
    ):
        found = verifier.verify(headers, WORK_BODY, exchange="", routing_key=WORK_QUEUE, now=now)
        assert found is expected
