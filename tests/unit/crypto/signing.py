"""Messages that are signed and judged in the tests."""

from collections.abc import Mapping

from fetcher.crypto.signer import (
    MessageSigner,
    MessageVerifier,
    SignatureOutcome,
)
from tests.unit.crypto import vectors
from tests.unit.crypto.vectors import WORK_BODY, WORK_QUEUE, WORK_TIME

KEY = vectors.ring().current.internal_hmac
VALID, FAILED = SignatureOutcome.VALID, SignatureOutcome.FAILED
MISSING = SignatureOutcome.MISSING_HEADERS

MULLER_BODY = WORK_BODY.replace(
    b'{"sales_db":{"orders":["id","total"]}}', '{"müller_db":{"t":["a"]}}'.encode()
)


def signed(tenant: str = "", body: bytes = WORK_BODY) -> dict[str, object]:
    headers: dict[str, object] = dict(
        MessageSigner(KEY).headers(
            tenant=tenant, body=body, exchange="", routing_key=WORK_QUEUE, timestamp=WORK_TIME
        )
    )
    if tenant:
        headers["X-Tenant-ID"] = tenant
    return headers


def judged(
    headers: Mapping[str, object],
    *,
    body: bytes = WORK_BODY,
    exchange: str = "",
    routing_key: str = WORK_QUEUE,
    now: float | None = WORK_TIME + 1,
    max_age_seconds: float | None = 300,
    allow_legacy: bool = False,
) -> SignatureOutcome:
    return MessageVerifier([KEY], allow_legacy=allow_legacy).verify(
        headers,
        body,
        exchange=exchange,
        routing_key=routing_key,
        now=now,
        max_age_seconds=max_age_seconds,
    )
