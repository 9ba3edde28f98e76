"""Message properties exactly as the Wire has them (spec worker-and-events 2.1, 2.3, 8.2).

pamqp picks the smallest integer type for a header's value, so that ``x-retry-count`` 0 would travel
as a signed byte; the Wire says 32-bit ``I``. And aiormq gives every message an id of its own, by
which it finds the message that the broker returned; the Wire has no ``message-id``.
"""

import struct
from collections.abc import Mapping
from typing import Final, cast

from aiormq import spec
from pamqp import encode
from pamqp.common import FieldValue

CONTENT_TYPE: Final = "application/json"
PERSISTENT: Final = 2

_INT_32: Final = range(-(2**31), 2**31)
_FLAGS: Final = sum(
    spec.Basic.Properties.flags[name] for name in ("content_type", "headers", "delivery_mode")
)


class WireProperties(spec.Basic.Properties):
    """JSON, persistent, with these headers, and nothing else; the message id stays with us."""

    def __init__(self, headers: Mapping[str, object], *, message_id: str) -> None:
        super().__init__(content_type=CONTENT_TYPE, delivery_mode=PERSISTENT, message_id=message_id)
        self._encoded_headers = encode_headers(headers)

    def marshal(self) -> bytes:
        return b"".join(
            (
                struct.pack(">H", _FLAGS),
                encode.short_string(CONTENT_TYPE),
                self._encoded_headers,
                bytes((PERSISTENT,)),
            )
        )


def encode_headers(headers: Mapping[str, object]) -> bytes:
    """An AMQP field table: ``str`` as ``S``, ``int`` as ``I``, byte arrays as ``x``.

    Other values, which only a foreign message brings along, are encoded as pamqp does; what it
    cannot encode raises TypeError or ValueError.
    """
    parts = [encode.short_string(name) + _encode_value(headers[name]) for name in sorted(headers)]
    table = b"".join(parts)
    return struct.pack(">I", len(table)) + table


def _encode_value(value: object) -> bytes:
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT_32:
        return struct.pack(">ci", b"I", value)
    if isinstance(value, bytes):
        value = bytearray(value)
    return encode.encode_table_value(cast("FieldValue", value))
