"""Properties of a received message that cannot be read must not end the connection.

pamqp raises inside of aiormq's reader for a header name or a routing key that is no UTF-8, a time
beyond the calendar, and (RecursionError) for some thousand tables inside of each other. The broker
takes such messages from anybody who may publish; with the reader the connection ended, and the
broker delivered the same message again, for ever. Here what cannot be read reads as empty, and the
message is judged like any other without headers.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from pamqp import decode

_Decoder = Callable[[bytes], tuple[int, Any]]

_UNREADABLE: Final = (ValueError, OverflowError, OSError, RecursionError, LookupError)


def _table(value: bytes) -> tuple[int, Any]:
    try:
        return decode.field_table(value)
    except _UNREADABLE:
        (length,) = struct.unpack_from(">I", value)
        return 4 + length, {}


def _time(value: bytes) -> tuple[int, Any]:
    try:
        return decode.timestamp(value)
    except _UNREADABLE:
        return 8, None


def _short_text(value: bytes) -> tuple[int, str]:
    end = 1 + value[0]
    return end, value[1:end].decode("utf-8", "replace")


_LENIENT: Final[dict[str, _Decoder]] = {
    "table": _table,
    "timestamp": _time,
    "shortstr": _short_text,
}


def read_what_can_be_read() -> None:
    """Once for the process; calling it again changes nothing."""
    decode.METHODS.update(_LENIENT)
