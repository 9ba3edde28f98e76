"""Signatures of messages: what is signed, by whom, and when a signature counts.

Spec worker-and-events section 3. The signature binds the tenant, the job, the route and every byte
of the body; only its age is left to the receiver.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

SIGNATURE_HEADER: Final = "x-message-signature"
TIMESTAMP_HEADER: Final = "t"
VERSION_HEADER: Final = "signature-version"
TENANT_HEADER: Final = "X-Tenant-ID"

SIGNATURE_VERSION: Final = "v1"
MIN_SIGNING_KEY_BYTES: Final = 32
FUTURE_SKEW_SECONDS: Final = 30

_DECIMAL = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_INT64_MAX = 2**63 - 1
_LINE_BREAK = re.compile(r"[\r\n]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class SigningKeyTooShort(ValueError):
    def __init__(self, size: int) -> None:
        super().__init__(
            f"signing key too short: got {size} bytes, minimum {MIN_SIGNING_KEY_BYTES} required"
        )


class UnsignableMessage(ValueError):
    """A field of the signed payload holds a line break, its separator; ``field`` names it."""

    def __init__(self, field: str) -> None:
        super().__init__(f"the message's {field} holds a line break")
        self.field = field


class SignatureOutcome(StrEnum):
    """What a verification found (spec 3.3)."""

    VALID = "valid"
    VALID_LEGACY = "valid_legacy"
    """The body-only signature of an older producer: it binds neither tenant nor route."""
    NOT_CONFIGURED = "verifier_not_configured"
    MISSING_HEADERS = "missing_signature_headers"
    FROM_FUTURE = "signature_from_future"
    EXPIRED = "signature_expired"
    UNSUPPORTED_VERSION = "unsupported_signature_version"
    FAILED = "signature_verification_failed"
    PREVIOUS_KEY_ENDED = "previous_key_ended"
    """Genuine, by a former key whose time is over."""

    @property
    def is_valid(self) -> bool:
        return self in (SignatureOutcome.VALID, SignatureOutcome.VALID_LEGACY)


def job_id_of(body: bytes) -> str:
    """The ``jobId`` that the signature binds: a string member of a JSON object, else empty.

    The key is exact and the last duplicate wins. Text that is not UTF-8 counts as U+FFFD, one for
    each byte, as in the reference. Nesting too deep for the parser counts as no JSON.
    """
    text = _SURROGATE.sub("\ufffd", body.decode("utf-8", "surrogateescape"))
    try:
        # numbers are never read: their size decides nothing here
        document = json.loads(text, parse_int=len, parse_float=len, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return ""
    job_id = document.get("jobId") if isinstance(document, dict) else None
    return _SURROGATE.sub("\ufffd", job_id) if isinstance(job_id, str) else ""


def canonical_payload(
    *, timestamp: int, tenant: str, body: bytes, exchange: str, routing_key: str
) -> bytes:
    """The signed bytes (spec 3.1). Raise UnsignableMessage."""
    fields = {
        "tenant": tenant,
        "job id": job_id_of(body),
        "exchange": exchange,
        "routing key": routing_key,
    }
    for name, value in fields.items():
        if _LINE_BREAK.search(value):
            raise UnsignableMessage(name)
    head = "\n".join([str(timestamp), SIGNATURE_VERSION, *fields.values(), ""])
    return head.encode("utf-8", "replace") + body


def _check_key(key: bytes) -> bytes:
    if len(key) < MIN_SIGNING_KEY_BYTES:
        raise SigningKeyTooShort(len(key))
    return key


class MessageSigner:
    """Signs with one key. Raise SigningKeyTooShort below 32 bytes."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = _check_key(key)

    def sign(
        self, *, tenant: str, body: bytes, exchange: str, routing_key: str, timestamp: int
    ) -> str:
        """The signature as 64 lower-case hex digits. Raise UnsignableMessage.

        ``tenant`` is the exact value of ``X-Tenant-ID`` as sent, empty where it is not;
        ``timestamp`` counts Unix seconds and must be taken anew for each publish attempt.
        """
        payload = canonical_payload(
            timestamp=timestamp,
            tenant=tenant,
            body=body,
            exchange=exchange,
            routing_key=routing_key,
        )
        return hmac.digest(self._key, payload, "sha256").hex()

    def headers(
        self, *, tenant: str, body: bytes, exchange: str, routing_key: str, timestamp: int
    ) -> dict[str, str]:
        """The three headers of a signature, to be put over the message's own."""
        return {
            SIGNATURE_HEADER: self.sign(
                tenant=tenant,
                body=body,
                exchange=exchange,
                routing_key=routing_key,
                timestamp=timestamp,
            ),
            TIMESTAMP_HEADER: str(timestamp),
            VERSION_HEADER: SIGNATURE_VERSION,
        }

    def __repr__(self) -> str:
        return "<MessageSigner>"


class MessageVerifier:
    """Verifies against any of its keys, current first.

    The keys after the first count before ``previous_until`` (Unix seconds), None: always. Without a
    key every message is NOT_CONFIGURED. Without ``time_decides`` no signature is FROM_FUTURE or
    EXPIRED, whatever the clocks of both sides say. Raise SigningKeyTooShort below 32 bytes.
    """

    __slots__ = ("_allow_legacy", "_keys", "_previous_until", "_time_decides")

    def __init__(
        self,
        keys: Sequence[bytes],
        *,
        previous_until: float | None = None,
        allow_legacy: bool = False,
        time_decides: bool = True,
    ) -> None:
        self._keys = tuple(_check_key(key) for key in keys)
        self._time_decides = time_decides
        self._previous_until = previous_until
        self._allow_legacy = allow_legacy

    def verify(
        self,
        headers: Mapping[str, object],
        body: bytes,
        *,
        exchange: str,
        routing_key: str,
        now: float | None,
        max_age_seconds: float | None = None,
    ) -> SignatureOutcome:
        """Judge one delivery in the order of spec 3.3; raises nothing.

        ``now`` counts Unix seconds: a signature more than 30 s ahead of it is FROM_FUTURE, one
        older than ``max_age_seconds`` EXPIRED where that is given. ``now=None`` leaves out both
        checks (consumers that count on ``ce-id``), and former keys then have no end.
        """
        if not self._keys:
            return SignatureOutcome.NOT_CONFIGURED
        judged_at = now if self._time_decides else None
        claim = _read_claim(headers, now=judged_at, max_age_seconds=max_age_seconds)
        if isinstance(claim, SignatureOutcome):
            return claim
        signature, timestamp = claim
        tenant = headers.get(TENANT_HEADER)
        try:
            payload = canonical_payload(
                timestamp=timestamp,
                tenant=tenant if isinstance(tenant, str) else "",
                body=body,
                exchange=exchange,
                routing_key=routing_key,
            )
        except UnsignableMessage:
            return SignatureOutcome.FAILED
        forms = [(SignatureOutcome.VALID, payload)]
        if self._allow_legacy:
            forms.append((SignatureOutcome.VALID_LEGACY, b"%d.%s" % (timestamp, body)))
        for outcome, signed in forms:
            by_current, by_previous = self._matches(signature, signed)
            if by_current or (by_previous and not self._has_ended(now)):
                return outcome
            if by_previous:
                return SignatureOutcome.PREVIOUS_KEY_ENDED
        return SignatureOutcome.FAILED

    def _has_ended(self, now: float | None) -> bool:
        if now is None or self._previous_until is None:
            return False
        return now >= self._previous_until

    def _matches(self, signature: str, payload: bytes) -> tuple[bool, bool]:
        """Whether the current key has signed it, and whether a former one has."""
        given = signature.encode("utf-8", "replace")
        # every key is tried, so that the time tells nothing of which one it was
        found = [False, False]
        for place, key in enumerate(self._keys):
            expected = hmac.new(key, payload, hashlib.sha256).hexdigest().encode("ascii")
            found[min(place, 1)] |= hmac.compare_digest(given, expected)
        return found[0], found[1]

    def __repr__(self) -> str:
        return "<MessageVerifier>"


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and infinities are no JSON")


def _read_claim(
    headers: Mapping[str, object], *, now: float | None, max_age_seconds: float | None
) -> tuple[str, int] | SignatureOutcome:
    """Steps 2 to 7: the given signature and its time, or why they do not count."""
    signature = headers.get(SIGNATURE_HEADER)
    if not isinstance(signature, str):
        return SignatureOutcome.MISSING_HEADERS
    timestamp = _read_time(headers.get(TIMESTAMP_HEADER), now=now, max_age_seconds=max_age_seconds)
    if isinstance(timestamp, SignatureOutcome):
        return timestamp
    version = headers.get(VERSION_HEADER)
    if not isinstance(version, str):
        return SignatureOutcome.MISSING_HEADERS
    if version != SIGNATURE_VERSION:
        return SignatureOutcome.UNSUPPORTED_VERSION
    return signature, timestamp


def _read_time(
    stamp: object, *, now: float | None, max_age_seconds: float | None
) -> int | SignatureOutcome:
    # Python's AMQP decoders do not tell an integer's width, so any integer will do
    if isinstance(stamp, bool) or not isinstance(stamp, str | int):
        return SignatureOutcome.MISSING_HEADERS
    timestamp = _parse_decimal(stamp) if isinstance(stamp, str) else stamp
    if timestamp is None or not -_INT64_MAX - 1 <= timestamp <= _INT64_MAX:
        return SignatureOutcome.FAILED
    if now is None:
        return timestamp
    if timestamp - now > FUTURE_SKEW_SECONDS:
        return SignatureOutcome.FROM_FUTURE
    if max_age_seconds is not None and now - timestamp > max_age_seconds > 0:
        return SignatureOutcome.EXPIRED
    return timestamp


def _parse_decimal(text: str) -> int | None:
    match = _DECIMAL.fullmatch(text)
    return int(match[1] + match[2]) if match is not None else None
