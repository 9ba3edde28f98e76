"""What a store that takes its time from the machine does when that is set (decision 047)."""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LEAST_MS: Final = 1000
"""What two clocks drift apart between one write and the next is less, and harms nothing."""

_WAITING: Final = (
    ("job", "status = 'processing'", ("lease_until",)),
    ("job", "status = 'pending'", ("due_at", "dispatched_at", "dispatch_lease_until")),
    ("job", "event_pending = 1", ("event_due_at", "event_lease_until")),
    ("job", "cleanup_due IS NOT NULL", ("cleanup_until", "cleanup_due")),
    ("connection_breaker", "true", ("retry_at", "probe_until", "changed_at")),
)
"""Every time that somebody waits for, and of which records: indexes lead to those of jobs. A record
is written once, since all of it has the time of one transaction."""


@dataclass(frozen=True, slots=True)
class ClockLook:
    """Times are milliseconds since 1970."""

    now_ms: int
    moved_ms: int
    """By how much the clock was set since it was followed; 0 for less than a second."""
    set_ahead_ms: int
    """By how much it is ahead of where it was furthest back since the process began: what ended
    then looks older by so much than it is."""
    drifted_ms: int = 0


@dataclass(frozen=True, slots=True)
class _Followed:
    base_ms: int
    """What the wall clock told when the monotonic one was 0."""
    set_ms: int = 0
    least_set_ms: int = 0


class MachineClock:
    """The wall clock beside the monotonic one, which nobody sets.

    One thread at a time follows it, others may look meanwhile.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._followed = _Followed(self._now_ms() - self._passed_ms())
        """Replaced whole: who looks meanwhile would else see a clock that was never set."""

    def look(self) -> ClockLook:
        followed, now_ms = self._followed, self._now_ms()
        drifted = now_ms - self._passed_ms() - followed.base_ms
        moved = drifted if abs(drifted) >= LEAST_MS else 0
        set_ms = followed.set_ms + moved
        return ClockLook(now_ms, moved, set_ms - min(set_ms, followed.least_set_ms), drifted)

    def follow(self, look: ClockLook) -> None:
        """What waits was moved by so much; the little that clocks drift apart is forgotten."""
        followed = self._followed
        set_ms = followed.set_ms + look.moved_ms
        self._followed = _Followed(
            followed.base_ms + look.drifted_ms, set_ms, min(followed.least_set_ms, set_ms)
        )

    def _now_ms(self) -> int:
        return round(self._wall() * 1000)

    def _passed_ms(self) -> int:
        return round(self._monotonic() * 1000)


def move_waiting(connection: sqlite3.Connection, moved_ms: int) -> None:
    """Inside of a transaction: all that waits does so as long as it would have."""
    for table, condition, columns in _WAITING:
        # a time that is not set stays so: NULL and a number make NULL
        moved = ", ".join(f"{column} = {column} + :moved" for column in columns)
        connection.execute(
            f"UPDATE {table} SET {moved} WHERE {condition}",  # noqa: S608 - constants
            {"moved": moved_ms},
        )
