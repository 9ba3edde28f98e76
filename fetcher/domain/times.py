"""Times as records keep them."""

from datetime import datetime


def cut_to_milliseconds(time: datetime) -> datetime:
    """What MongoDB keeps of a time; cut before storing, so that a later read shows the same."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)
