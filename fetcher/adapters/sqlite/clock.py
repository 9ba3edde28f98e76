"""What a store that takes its time from the machine does when that is set (decision 047)."""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LEAST_MS: Final = 1000
"""What two clocks drift apart between one write and the next is less, and harms nothing."""

_WAITING: Final = (
    ("job", "lease_until", "status = 'processing'"),
    ("job", "due_at", "status = 'pending'"),
    ("job", "dispatched_at", "status = 'pending'"),
    ("job", "dispatch_lease_until", "status = 'pending'"),
    ("job", "event_due_at", "event_pending = 1"),
    ("job", "event_lease_until", "event_pending = 1"),
    ("job", "cleanup_until", "cleanup_due IS NOT NULL"),
    ("job", "cleanup_due", "cleanup_due IS NOT NULL"),
    ("connection_breaker", "retry_at", "true"),
    ("connection_breaker", "probe_until", "true"),
    ("connection_breaker", "changed_at", "true"),
)
"""Every time that somebody waits for, and of which records: indexes lead to those of jobs."""


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
        self._base_ms = self._now_ms() - self._passed_ms()
        self._set_ms = 0
        self._least_set_ms = 0

    def look(self) -> ClockLook:
        now_ms = self._now_ms()
        drifted = now_ms - self._passed_ms() - self._base_ms
        moved = drifted if abs(drifted) >= LEAST_MS else 0
        set_ms = self._set_ms + moved
        return ClockLook(now_ms, moved, set_ms - min(set_ms, self._least_set_ms), drifted)

    def follow(self, look: ClockLook) -> None:
        """What waits was moved by so much; the little that clocks drift apart is forgotten."""
        self._base_ms += look.drifted_ms
        self._set_ms += look.moved_ms
        self._least_set_ms = min(self._least_set_ms, self._set_ms)

    def _now_ms(self) -> int:
        return round(self._wall() * 1000)

    def _passed_ms(self) -> int:
        return round(self._monotonic() * 1000)


def move_waiting(connection: sqlite3.Connection, moved_ms: int) -> None:
    """Inside of a transaction: all that waits does so as long as it would have."""
    for table, column, condition in _WAITING:
        connection.execute(
            f"UPDATE {table} SET {column} = {column} + ?"  # noqa: S608 - constants
            f" WHERE {condition} AND {column} IS NOT NULL",
            (moved_ms,),
        )
