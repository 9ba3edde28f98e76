"""Time that moves only when it is told to."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Both clocks of the Engine: ``now`` for its times, ``monotonic`` for its deadlines."""

    def __init__(self, start: datetime = datetime(2031, 4, 5, 6, 7, 8, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed_seconds = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass: for both clocks."""
        self._elapsed_seconds += seconds

    def now(self) -> datetime:
        """The time of day, as ``Engine(now=...)`` takes it."""
        return self._start + timedelta(seconds=self._elapsed_seconds)

    def monotonic(self) -> float:
        """Seconds since some moment, as ``SequentialConcurrency`` takes them."""
        return self._elapsed_seconds
