"""Which bytes a signature covers, and what those that come from outside can do to it."""

import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.crypto.signer import (
    SIGNATURE_HEADER,
    MessageSigner,
    MessageVerifier,
    SignatureOutcome,
    UnsignableMessage,
    canonical_payload,
    job_id_of,
)
from fetcher.domain.message_envelope import HeaderValue, envelope
from tests.unit.crypto.signing import (
    FAILED,
    KEY,
    VALID,
    judged,
    signed,
)
from tests.unit.crypto.vectors import JOB_ID, WORK_BODY, WORK_QUEUE


def test_headers_that_the_envelope_owns_are_never_the_callers() -> None:
    # S15
    mine: dict[str, HeaderValue] = {
        "X-Request-Id": "mine",
        "x-retry-count": 9,
        "X-Tenant-ID": "mine",
        "x-message-signature": "mine",
        "t": "mine",
        "signature-version": "mine",
        "jobId": JOB_ID,
        "T": "another name: case counts",
    }
    assert envelope(mine, request_id="r-1", tenant="") == {
        "jobId": JOB_ID,
        "T": "another name: case counts",
        "X-Request-Id": "r-1",
        "x-retry-count": 0,
    }
    assert envelope(mine, request_id="r-1", tenant="t1")["X-Tenant-ID"] == "t1"


@pytest.mark.parametrize("body", [b"not json", b"", b'{"jobId":7}', b"[1]", b"null", b'"jobId"'])
def test_a_body_without_job_id_can_be_signed(body: bytes) -> None:
    # S16
    assert job_id_of(body) == ""
    assert judged(signed(body=body), body=body) is VALID


def test_without_a_key_nothing_is_verified() -> None:
    # S17: whether a role may start without one is the start's decision
    outcome = MessageVerifier([]).verify(
        signed(), WORK_BODY, exchange="", routing_key=WORK_QUEUE, now=None
    )
    assert outcome is SignatureOutcome.NOT_CONFIGURED


def test_a_streamed_hmac_equals_one_call() -> None:
    # S18: what the sealer relies on
    data = bytes(range(256)) * 40 * 1024
    streamed = hmac.new(KEY, digestmod="sha256")
    for start in range(0, len(data), 65_537):
        streamed.update(data[start : start + 65_537])
    assert streamed.digest() == hmac.digest(KEY, data, "sha256")


def test_a_previous_key_verifies_too() -> None:
    verifier = MessageVerifier([bytes(32), KEY])
    outcome = verifier.verify(signed(), WORK_BODY, exchange="", routing_key=WORK_QUEUE, now=None)
    assert outcome is VALID


@pytest.mark.parametrize("line_break", ["\n", "\r"])
def test_a_line_break_in_a_field_is_neither_signed_nor_verified(line_break: str) -> None:
    bad = f"a{line_break}b"
    body = json.dumps({"jobId": bad}).encode()
    cases: dict[str, dict[str, str | bytes]] = {
        "tenant": {"tenant": bad},
        "exchange": {"exchange": bad},
        "routing key": {"routing_key": bad},
        "job id": {"body": body},
    }
    for field, changes in cases.items():
        arguments: dict[str, str | bytes] = {
            "tenant": "",
            "body": b"{}",
            "exchange": "",
            "routing_key": "q",
            **changes,
        }
        with pytest.raises(UnsignableMessage) as refused:
            MessageSigner(KEY).sign(timestamp=0, **arguments)  # type: ignore[arg-type] # mixed
        assert refused.value.field == field
    assert judged({**signed(), "X-Tenant-ID": bad}) is FAILED
    assert judged(signed(), exchange=bad) is FAILED
    assert judged(signed(), routing_key=bad) is FAILED


def test_moving_the_separator_between_fields_changes_nothing_for_an_attacker() -> None:
    forged = (
        canonical_payload(timestamp=1, tenant="", body=b"{}", exchange="", routing_key="q") + b"\n"
    )
    headers = {
        SIGNATURE_HEADER: hmac.digest(KEY, forged, "sha256").hex(),
        "t": "1",
        "signature-version": "v1",
    }
    assert judged(headers, body=b"{}", routing_key="q\n", now=None) is FAILED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"jobId":"a","jobId":"b"}', "b"),
        (b'{"jobId":"a","jobId":1}', ""),
        (b'{"JOBID":"a"}', ""),
        (b' \r\n\t{"jobId":"a"} ', "a"),
        (b'{"jobId":"a"} x', ""),
        (b'{"x":{"jobId":"a"}}', ""),
        (b'{"jobId":"a","n":NaN}', ""),
        (b'{"jobId":"a","n":' + b"1" * 5000 + b"}", "a"),
        (b'{"jobId":"a","n":1e999999}', "a"),
        (b'{"jobId":"not a uuid"}', "not a uuid"),
        (b'{"jobId":"\\ud800x"}', "\ufffdx"),
        (b'{"jobId":"\\ud83d\\ude00"}', "\U0001f600"),
        (b'{"jobId":"a\xff\xfeb"}', "a\ufffd\ufffdb"),
        (b'\xef\xbb\xbf{"jobId":"a"}', ""),
        (b'{"jobId":"a","d":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ],
)
def test_the_signed_job_id_is_the_bodys_own_text(body: bytes, expected: str) -> None:
    assert job_id_of(body) == expected


@given(
    tenant=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True),
    body=st.binary(max_size=200),
    exchange=st.text(max_size=20),
    routing_key=st.text(max_size=20),
    timestamp=st.integers(min_value=-(2**63), max_value=2**63 - 1),
)
def test_what_was_signed_verifies_and_nothing_raises(
    tenant: str, body: bytes, exchange: str, routing_key: str, timestamp: int
) -> None:
    signer, verifier = MessageSigner(KEY), MessageVerifier([KEY])

    def sign() -> dict[str, str]:
        return signer.headers(
            tenant=tenant,
            body=body,
            exchange=exchange,
            routing_key=routing_key,
            timestamp=timestamp,
        )

    def verify(received_body: bytes) -> SignatureOutcome:
        received = {**sign(), "X-Tenant-ID": tenant}
        return verifier.verify(
            received, received_body, exchange=exchange, routing_key=routing_key, now=None
        )

    if any(mark in exchange + routing_key for mark in "\r\n"):
        with pytest.raises(UnsignableMessage):
            sign()
        return
    assert verify(body) is VALID
    assert verify(body + b"x") is FAILED


def test_no_representation_shows_a_key() -> None:
    assert repr(MessageSigner(KEY)) == "<MessageSigner>"
    assert repr(MessageVerifier([KEY])) == "<MessageVerifier>"
