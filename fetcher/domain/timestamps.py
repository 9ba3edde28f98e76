"""RFC 3339 as Fetcher writes it: UTC with ``Z``, trailing zeros of the fraction cut."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Raise ValueError for a time without a zone: its instant would be a guess."""
    if moment.utcoffset() is None:
        raise ValueError("a time without a zone")
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{utc.isoformat(timespec='seconds')}{fraction}Z"
