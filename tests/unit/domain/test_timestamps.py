from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

from fetcher.domain.timestamps import rfc3339


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC), "2026-03-14T09:26:53Z"),
        (datetime(2026, 3, 14, 9, 26, 53, 500_000, tzinfo=UTC), "2026-03-14T09:26:53.5Z"),
        (datetime(2026, 3, 14, 9, 26, 53, 1, tzinfo=UTC), "2026-03-14T09:26:53.000001Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (
            datetime(2026, 3, 14, 1, 0, tzinfo=timezone(timedelta(hours=2))),
            "2026-03-13T23:00:00Z",
        ),
    ],
)
def test_times_are_written_in_utc_without_trailing_zeros(moment: datetime, text: str) -> None:
    assert rfc3339(moment) == text
    assert datetime.fromisoformat(text) == moment


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        rfc3339(datetime(2026, 3, 14))  # noqa: DTZ001 - the missing zone is the point


def test_a_zone_that_cannot_tell_is_none() -> None:
    class NoOffset(tzinfo):
        def utcoffset(self, moment: datetime | None) -> None:
            return None

        dst = tzname = utcoffset

    with pytest.raises(ValueError, match="without a zone"):
        rfc3339(datetime(2026, 3, 14, tzinfo=NoOffset()))
