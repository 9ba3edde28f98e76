"""Times as this store keeps them: whole milliseconds since 1970, in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Final, overload

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


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
    return None if milliseconds is None else _EPOCH + milliseconds * _MILLISECOND


def later_ms(now_ms: int, seconds: float) -> int:
    """The time that many seconds later, or earlier where they are negative."""
    return now_ms + round(seconds * 1000)
