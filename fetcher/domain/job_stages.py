"""The stages of a job's way, and who is told how long each took."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Protocol


class JobStage(StrEnum):
    WAIT = "wait"
    """From the record's creation to its first claim."""
    CLAIM = "claim"
    CONNECT = "connect"
    """Sessions to the sources, their schemas, the plan."""
    READ = "read"
    """While the attempt waits for rows: what it takes to store them does not count."""
    STORE = "store"
    """Sealing and uploading, with the upload's last step."""
    SETTLE = "settle"
    """The terminal write, until the record store has answered."""
    EVENT = "event"
    """From the terminal write's time to the broker's confirmation of the event."""


class JobObserver(Protocol):
    """Called often: it counts, and does nothing else."""

    def stage_ended(self, stage: JobStage, seconds: float) -> None: ...

    def extracted(self, rows: int, size_bytes: int) -> None:
        """So much more was read from a source."""


class StageClock:
    """Adds up stages that come in pieces; one that lies within another does not count for it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` is monotonic, in seconds."""
        self._clock = clock
        self._seconds: defaultdict[JobStage, float] = defaultdict(float)
        self._open: list[JobStage] = []

    @contextmanager
    def during(self, stage: JobStage) -> Iterator[None]:
        outer = self._open[-1] if self._open else None
        self._open.append(stage)
        started_at = self._clock()
        try:
            yield
        finally:
            seconds = self._clock() - started_at
            self._open.pop()
            self._seconds[stage] += seconds
            if outer is not None:
                self._seconds[outer] -= seconds

    def tell(self, observer: JobObserver) -> None:
        for stage, seconds in self._seconds.items():
            observer.stage_ended(stage, seconds)
