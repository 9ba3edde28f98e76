"""The one text form of a point in time."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """``2031-04-05T06:07:08.12Z``: in UTC, without trailing zeros; a naive time counts as UTC.

    Raise OverflowError where the instant has no four-digit year in UTC.
    """
    if (
        moment.utcoffset() is None
    ):  # naive by Python's definition: a zone may have no offset to tell
        text = moment.isoformat()
    else:
        in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
        text = in_utc.isoformat().removesuffix("+00:00")
    return f"{text.rstrip('0') if moment.microsecond else text}Z"


def utc_now() -> datetime:
    return datetime.now(UTC)
