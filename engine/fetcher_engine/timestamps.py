"""The one text form of a point in time."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """``2031-04-05T06:07:08.12Z``: in UTC, without trailing zeros; a naive time counts as UTC.

    Raise OverflowError where the instant has no four-digit year in UTC.
    """
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    text = f"{aware:%H:%M:%S}"
    fraction = f".{aware.microsecond:06d}".rstrip("0") if aware.microsecond else ""
    return f"{aware.year:04d}-{aware.month:02d}-{aware.day:02d}T{text}{fraction}Z"


def utc_now() -> datetime:
    return datetime.now(UTC)
