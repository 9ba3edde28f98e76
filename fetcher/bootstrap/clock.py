"""The wall clock of the process, which everything below gets handed in."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)
