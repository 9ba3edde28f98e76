"""Places in lists that are sorted by a time, then an id, as the text that answers give."""

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from fetcher.api.list_parameters import invalid_parameter

CURSOR_SCHEMA: Final = {"type": "string", "pattern": "^A[A-Za-f][A-Za-z0-9_-]{30}$"}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC)
_CURSOR: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
_TIME_BYTES: Final = 8


def place_text(time: datetime, record_id: UUID) -> str:
    """Microseconds, then the id; :func:`parse_place` reads it back."""
    microseconds = (time - _EPOCH) // timedelta(microseconds=1)
    place = microseconds.to_bytes(_TIME_BYTES, signed=True) + record_id.bytes
    return base64.urlsafe_b64encode(place).decode("ascii")


def parse_place(text: str) -> tuple[datetime, UUID]:
    """Raise ``FET-0405`` for what no answer gave."""
    if not _CURSOR.fullmatch(text):
        raise invalid_parameter("cursor")
    place = base64.urlsafe_b64decode(text)
    microseconds = int.from_bytes(place[:_TIME_BYTES], signed=True)
    if not 0 <= microseconds <= (_LATEST - _EPOCH) // timedelta(microseconds=1):
        raise invalid_parameter("cursor")
    return _EPOCH + timedelta(microseconds=microseconds), UUID(bytes=place[_TIME_BYTES:])
