"""Times as this store keeps them: whole milliseconds since 1970, in UTC."""

from datetime import UTC, datetime, timedelta
from sqlite3 import Row
from typing import Final, overload

from fetcher.domain.errors import RecordCorrupt

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
LATEST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
"""What is later, a column holds, and no ``datetime``."""
_EARLIEST_MS: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


@overload
def to_ms(time: datetime) -> int: ...
@overload
def to_ms(time: None) -> None: ...
def to_ms(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // _MILLISECOND


@overload
def from_ms(milliseconds: int) -> datetime: ...
@overload
def from_ms(milliseconds: None) -> None: ...
def from_ms(milliseconds: int | None) -> datetime | None:
    """Raise OverflowError for what lies outside of the years 1 to 9999: of a stored time see
    :func:`time_of`."""
    return None if milliseconds is None else _EPOCH + milliseconds * _MILLISECOND


def optional_time_of(row: Row, column: str) -> datetime | None:
    """What a record's column says. Raise RecordCorrupt for a time that no clock has told."""
    try:
        milliseconds: int | None = row[column]
        return from_ms(milliseconds)
    except OverflowError:
        failure = RecordCorrupt(f"the column {column} holds something else")
    raise failure


def time_of(row: Row, column: str) -> datetime:
    """As :func:`optional_time_of`, of a column that has a time in each row."""
    time = optional_time_of(row, column)
    if time is None:
        raise RecordCorrupt(f"the column {column} holds nothing")
    return time


def nearest_time(milliseconds: int) -> datetime:
    """For places in an order: what lies outside of all times is the first or the last of them."""
    return from_ms(min(max(milliseconds, _EARLIEST_MS), LATEST_MS))


def later_ms(now_ms: int, seconds: float) -> int:
    """The time that many seconds later, or earlier where they are negative."""
    return now_ms + round(seconds * 1000)


def age_seconds(since_ms: int | None, now_ms: int) -> float:
    """0 for a time that is not set, or lies ahead."""
    return 0.0 if since_ms is None else max(0, now_ms - since_ms) / 1000
