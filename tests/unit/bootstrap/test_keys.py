"""Who verifies work messages, as the service makes it."""

import pytest

from fetcher.bootstrap.keys import work_verifier
from fetcher.crypto.keys import KeyRing, generate_master_key
from fetcher.crypto.signer import MessageSigner, SignatureOutcome

NOW = 1_800_000_000
DAY_SECONDS = 86_400


@pytest.mark.parametrize("ahead_seconds", [0, 31, DAY_SECONDS, -DAY_SECONDS])
def test_the_clock_of_who_signed_a_work_message_decides_nothing(ahead_seconds: int) -> None:
    """A manager's may be wrong, and its jobs must not wait for that (decision 047)."""
    ring = KeyRing.from_text(generate_master_key())
    body = b'{"jobId":"0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"}'
    headers = MessageSigner(ring.current.internal_hmac).headers(
        tenant="", body=body, exchange="", routing_key="work", timestamp=NOW + ahead_seconds
    )

    def judged(received: bytes) -> SignatureOutcome:
        return work_verifier(ring).verify(
            headers, received, exchange="", routing_key="work", now=NOW
        )

    assert judged(body) is SignatureOutcome.VALID
    assert judged(body + b" ") is SignatureOutcome.FAILED
