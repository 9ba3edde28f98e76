"""RFC 3339 as Fetcher writes it: UTC with ``Z``, trailing zeros of the fraction cut."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Raise ValueError for a time without a zone: its instant would be a guess."""
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("a time without a zone")
    utc = moment.astimezone(UTC) if offset else moment
    text = utc.isoformat().removesuffix("+00:00")
    return f"{text.rstrip('0') if utc.microsecond else text}Z"
