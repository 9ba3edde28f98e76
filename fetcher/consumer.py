"""For consumers of events: is this message ours, and what is in the result it names.

Spec worker-and-events 10.2. The steps: drop what was seen by its ``ce-id``, :func:`verify_event`,
fetch ``result.path``, :func:`open_result`. ``GET /v1/fetcher/{id}`` stays the authority.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fetcher.crypto.keys import DEFAULT_KEY_VERSION, KeySet, decode_master_key
from fetcher.crypto.opener import OpenedResult, ResultDefect, ResultRejected
from fetcher.crypto.opener import open_result as _open_result
from fetcher.crypto.sealer import Buffer
from fetcher.crypto.signer import MessageVerifier, SignatureOutcome

__all__ = [
    "EventRejected",
    "OpenedResult",
    "ResultDefect",
    "ResultRejected",
    "SignatureOutcome",
    "derive_keys",
    "open_result",
    "verify_event",
]

EVENTS_EXCHANGE: Final = "fetcher.job.events"


class EventRejected(Exception):
    """The message is not one that Fetcher signed for this route; ``outcome`` says why."""

    def __init__(self, outcome: SignatureOutcome) -> None:
        super().__init__(f"event rejected: {outcome.value.replace('_', ' ')}")
        self.outcome = outcome


def derive_keys(master: str, *, version: str = DEFAULT_KEY_VERSION) -> KeySet:
    """The keys of one master (``APP_ENC_KEY``): ``external_hmac`` and ``storage`` are needed here.

    Whoever holds the external key can forge events. Raise a MasterKeyError (a ValueError).
    """
    return KeySet.from_master(decode_master_key(master), version=version)


def verify_event(
    headers: Mapping[str, object],
    body: bytes,
    exchange: str = EVENTS_EXCHANGE,
    routing_key: str = "job.completed",
    *,
    key: bytes,
    previous_keys: Sequence[bytes] = (),
    now: float | None = None,
    max_age_seconds: float | None = None,
) -> None:
    """Return when ``key`` (the external one) or a previous one signed exactly this; else raise
    EventRejected.

    ``exchange`` and ``routing_key`` are those under which it was published: after dead-lettering or
    a shovel the delivery's own differ. Header values may be text or bytes. An event may have waited
    in a queue for long, so time decides nothing unless ``now`` (Unix seconds) is given: then one
    from the future is rejected, and one older than ``max_age_seconds`` where that is given too.
    """
    verifier = MessageVerifier([key, *previous_keys])
    outcome = verifier.verify(
        {name: _as_text(value) for name, value in headers.items()},
        body,
        exchange=exchange,
        routing_key=routing_key,
        now=now,
        max_age_seconds=max_age_seconds,
    )
    if not outcome.is_valid:
        raise EventRejected(outcome)


def open_result(
    sealed: Buffer | Iterable[Buffer],
    *,
    storage_key: bytes,
    hmac_key: bytes,
    expected_hmac: str,
    expected_size: int,
) -> OpenedResult:
    """Decrypt and verify a stored object, given at once or in chunks, before any of it is read.

    ``expected_hmac`` and ``expected_size`` are the event's ``result.hmac`` and ``sizeBytes``. Raise
    ResultRejected.
    """
    return _open_result(
        sealed,
        storage_key=storage_key,
        hmac_key=hmac_key,
        expected_hmac=expected_hmac,
        expected_size=expected_size,
    )


def _as_text(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return value
