"""Forged, replayed, truncated and bit-flipped: nothing of it is accepted, and nothing else happens.

``FETCHER_TEST_SCALE=10`` makes it 100 000 of each kind.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from fetcher.consumer import EventRejected, ResultRejected, derive_keys, open_result, verify_event
from fetcher.crypto.signer import MessageSigner, MessageVerifier, SignatureOutcome
from tests.scale import scale_factor, scaled
from tests.unit.crypto import vectors
from tests.unit.crypto.mutations import Message, mutated_messages, mutated_objects
from tests.unit.crypto.signing import MULLER_BODY

KEYS = derive_keys(vectors.APP_ENC_KEY)
NIGHTLY_SCALE: Final = 10
COUNT: Final = 100_000 if scale_factor() >= NIGHTLY_SCALE else scaled(2_000)
SEEDS: Final = 4
"""Each has its share of the count."""


def _signed(key: bytes, body: bytes, *, tenant: str, exchange: str, routing_key: str) -> Message:
    headers: dict[str, object] = dict(
        MessageSigner(key).headers(
            tenant=tenant,
            body=body,
            exchange=exchange,
            routing_key=routing_key,
            timestamp=vectors.WORK_TIME,
        )
    )
    if tenant:
        headers["X-Tenant-ID"] = tenant
    return Message(headers, body, exchange, routing_key)


_work = partial(_signed, KEYS.internal_hmac, exchange="", routing_key=vectors.WORK_QUEUE)
_event = partial(_signed, KEYS.external_hmac, exchange=vectors.EVENTS_EXCHANGE)
WORK: Final = (
    _work(vectors.WORK_BODY, tenant=""),
    _work(vectors.WORK_BODY, tenant="tenant-a"),
    _work(MULLER_BODY, tenant="tenant-a"),
)
EVENTS: Final = (
    _event(vectors.COMPLETED_BODY, tenant="single-tenant", routing_key="job.completed"),
    _event(vectors.COMPLETED_BODY, tenant="tenant-a", routing_key="job.completed"),
    _event(vectors.FAILED_BODY, tenant="tenant-a", routing_key="job.failed"),
)


def _judge_work(message: Message, *, allow_legacy: bool = False) -> str:
    verifier = MessageVerifier([KEYS.internal_hmac], allow_legacy=allow_legacy)
    outcome = verifier.verify(
        message.headers,
        message.body,
        exchange=message.exchange,
        routing_key=message.routing_key,
        now=vectors.WORK_TIME + 1,
    )
    return "accepted" if outcome.is_valid else outcome.value


def _judge_event(message: Message) -> str:
    try:
        verify_event(
            message.headers,
            message.body,
            message.exchange,
            message.routing_key,
            key=KEYS.external_hmac,
        )
    except EventRejected as rejected:
        return rejected.outcome.value
    return "accepted"


def _judge_result(text: bytes) -> str:
    try:
        opened = open_result(
            text,
            storage_key=KEYS.storage,
            hmac_key=KEYS.external_hmac,
            expected_hmac=vectors.RESULT_HMAC,
            expected_size=len(vectors.RESULT_PLAINTEXT),
        )
    except ResultRejected as rejected:
        return rejected.defect.value
    opened.close()
    return "accepted"


def test_what_is_mutated_is_accepted_as_it_is() -> None:
    assert {_judge_work(message) for message in WORK} == {"accepted"}
    assert {_judge_event(message) for message in EVENTS} == {"accepted"}
    assert _judge_result(vectors.RESULT_OBJECT) == "accepted"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(
    ("judge", "genuine"),
    [
        pytest.param(_judge_work, WORK, id="work"),
        pytest.param(partial(_judge_work, allow_legacy=True), WORK, id="work with legacy allowed"),
        pytest.param(_judge_event, EVENTS, id="events"),
    ],
)
def test_no_message_that_nobody_signed_is_accepted(
    judge: Callable[[Message], str], genuine: tuple[Message, ...], seed: int
) -> None:
    found: Counter[str] = Counter()
    for message in mutated_messages(seed, genuine, COUNT // SEEDS):
        verdict = judge(message)
        assert verdict != "accepted", message
        found[verdict] += 1
    # each way to be rejected was tried
    assert set(found) >= {
        SignatureOutcome.FAILED,
        SignatureOutcome.MISSING_HEADERS,
        SignatureOutcome.UNSUPPORTED_VERSION,
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_object_that_was_changed_is_opened(seed: int) -> None:
    found: Counter[str] = Counter()
    for text in mutated_objects(seed, vectors.RESULT_OBJECT, COUNT // SEEDS):
        verdict = _judge_result(text)
        assert verdict != "accepted", text
        found[verdict] += 1
    assert set(found) == {"not_base64", "wrong_size", "not_authentic"}
