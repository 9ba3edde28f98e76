"""Messages, and what else comes over AMQP. Frames are pamqp's; what it raises for a header, which
any publisher writes, is not."""

import json
import struct
from datetime import UTC, datetime
from typing import Final, cast

from pamqp import commands, encode
from pamqp.common import FieldValue

from fetcher.adapters.amqp.dead_letters import _carried
from fetcher.adapters.amqp.harmless_looks import is_look_harmless
from fetcher.adapters.amqp.hostile_values import read_what_can_be_read
from fetcher.adapters.amqp.topology import dead_letters
from fetcher.adapters.amqp.topology_check import _learn, _told_difference, judge
from fetcher.adapters.amqp.wire import encode_headers
from fetcher.adapters.dead_letters import dead_since, read_dead_letter
from fetcher.commands.dead_letters import DeadLetters
from fetcher.commands.verify_work import VerifyWork
from fetcher.consumer import EventRejected, derive_keys, verify_event
from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.errors import PortError
from fetcher.domain.reference_events import read_reference_event
from fetcher.domain.saved_letters import fingerprint, saved_form
from fetcher.domain.timestamps import rfc3339
from fetcher.domain.trace_context import trace_context_in
from fetcher.domain.work_message import WorkMessageError, parse_work_message
from fetcher.ports import DeadLetterWindow
from tests.fuzz.decoders.decoder import Decoder, text_of
from tests.reference_outbox import an_envelope
from tests.unit.crypto import vectors

_KEYS: Final = derive_keys(vectors.APP_ENC_KEY)
_NOW: Final = datetime(2026, 3, 14, tzinfo=UTC)
_VERIFIER: Final = VerifyWork(verifier=MessageVerifier([_KEYS.external_hmac]), now=lambda: _NOW)
_FLAGS: Final = commands.Basic.Properties.flags
_QUEUE: Final = dead_letters("fetcher.dlq")
_LIMITED: Final = (
    b"PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/':"
    b" received none but current is the value '20' of type 'long'"
)
_DEATHS: Final[list[FieldValue]] = [
    {"reason": "rejected", "exchange": "", "routing-keys": ["q"], "time": _NOW, "count": 1}
]
_OURS: Final = {
    "x-fetcher-reject-reason": "bad_signature",
    "x-fetcher-rejected-at": "0001-01-01T00:00:00+14:00",
    "t": "1773480413",
    "d": 2.5,
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}


def messages() -> dict[str, Decoder]:
    return {
        "work message": Decoder(
            seeds=[vectors.WORK_BODY],
            decode=lambda data: parse_work_message(data, {"X-Tenant-ID": text_of(data[:9])}),
            refusals=(WorkMessageError,),
        ),
        "event": Decoder(
            seeds=[vectors.COMPLETED_BODY, vectors.FAILED_BODY],
            decode=_event,
            refusals=(EventRejected,),
        ),
        "reference's event": Decoder(
            seeds=[json.dumps(an_envelope(vectors.JOB_ID)).encode()],
            decode=lambda data: read_reference_event(text_of(data), request_id="r"),
            refusals=(PortError, ValueError),
        ),
        "headers of a message": Decoder(
            seeds=[
                encode.field_table({"x-death": _DEATHS, "n": {"m": [1, None]}})[4:],
                encode_headers(_OURS)[4:],
            ],
            decode=_headers,
        ),
    }


def answers() -> dict[str, Decoder]:
    return {
        "queue's difference": Decoder(
            seeds=[
                _LIMITED,
                _LIMITED.replace(b"the value '20' of type 'long'", b"'classic'"),
                _LIMITED.replace(b"the value '20' of type 'long'", b"none"),
            ],
            decode=_difference,
        ),
    }


def _event(data: bytes) -> None:
    lines = data.split(b"\n")
    headers = {"x-message-signature": text_of(lines[0]), "t": text_of(lines[-1])}
    verify_event(headers, data, "fetcher.job.events", "job.completed", key=_KEYS.external_hmac)


def _headers(entries: bytes) -> None:
    """Through all that looks at a stranger's. Their size is the broker's to tell, and right."""
    read_what_can_be_read()
    found = commands.Basic.Properties()
    table = struct.pack(">I", len(entries)) + entries
    found.unmarshal(_FLAGS["headers"] | _FLAGS["delivery_mode"], table + bytes((2,)))
    assert found.delivery_mode == 2
    headers = found.headers or {}
    letter = read_dead_letter(tag=1, body=b"", headers=headers)
    fingerprint(json.loads(json.dumps(saved_form(letter), allow_nan=False)))
    DeadLetters(cast("DeadLetterWindow", None), _VERIFIER).examine(letter, position=1)
    since = dead_since(headers)
    if since is not None:
        assert isinstance((_NOW - since).total_seconds(), float)
        rfc3339(since)
    assert len(encode_headers(_carried(headers))) <= 1 << 17
    trace_context_in(headers)


def _difference(data: bytes) -> None:
    text = text_of(data)
    actual: dict[str, FieldValue] = {**_QUEUE.arguments}
    _learn(actual, text)
    _told_difference(text, "durable")
    judge(_QUEUE, actual)
    is_look_harmless(actual, (3, 12, 1))
