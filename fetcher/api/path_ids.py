"""Ids in paths (spec rest-api 5.2)."""

import re
from uuid import UUID

from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import ConnectionId, JobId

_CANONICAL = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID = re.compile(
    rf"(?:urn:uuid:)?({_CANONICAL})|\{{({_CANONICAL})\}}|([0-9a-f]{{32}})",
    re.ASCII | re.IGNORECASE,
)


def connection_id(text: str) -> ConnectionId:
    """Raise ``FET-0404``."""
    return ConnectionId(_parsed(text, "connection"))


def job_id(text: str) -> JobId:
    """Raise ``FET-0404``."""
    return JobId(_parsed(text, "job"))


def _parsed(text: str, what: str) -> UUID:
    match = _ID.fullmatch(text)
    if match is None:
        raise FetcherError("FET-0404", "Invalid Path Parameter", f"invalid {what} id")
    return UUID(next(digits for digits in match.groups() if digits))
