"""Times as records keep them."""

from datetime import datetime, timedelta


def cut_to_milliseconds(time: datetime) -> datetime:
    """What MongoDB keeps of a time; cut before storing, so that a later read shows the same."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def later_than(before: datetime, *, now: datetime) -> datetime:
    """``now`` as records keep it, and strictly after ``before`` whatever the clock says."""
    return max(cut_to_milliseconds(now), cut_to_milliseconds(before) + timedelta(milliseconds=1))
