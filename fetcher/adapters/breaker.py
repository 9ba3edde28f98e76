"""A circuit breaker, so that what is down is left alone for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

import trio

from fetcher.domain.errors import (
    LeftAlone,
    PortUnavailable,
    QueueFull,
    QueueMissing,
    Unroutable,
)

FAILURES_TO_OPEN: Final = 5
OPEN_SECONDS: Final = 30.0
"""The broker's (spec worker-and-events 7.4)."""
TRIAL_SECONDS: Final = 1.0
"""How long others may take the one trial to last."""


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitBreaker:
    """Opens after some failures in a row; later lets one attempt through, which decides."""

    def __init__(
        self, *, failures_to_open: int = FAILURES_TO_OPEN, open_seconds: float = OPEN_SECONDS
    ) -> None:
        self._failures_to_open = failures_to_open
        self._open_seconds = open_seconds
        self._failures = 0
        self._opened_at: float | None = None
        self._trial_is_out = False

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return BreakerState.CLOSED
        if trio.current_time() - self._opened_at < self._open_seconds:
            return BreakerState.OPEN
        return BreakerState.HALF_OPEN

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Around one use of the dependency: PortUnavailable out of it counts as a failure, but not
        that of a queue which is full or is not there.

        Raises LeftAlone itself, without any I/O, while open or while half-open with its one trial
        out. An attempt that was cancelled says nothing about it.
        """
        is_trial = self._admit()
        try:
            yield
        except (QueueFull, QueueMissing, Unroutable):
            # It is there and answered; what it says of one message says nothing of others.
            self._succeeded()
            raise
        except PortUnavailable:
            self._failed()
            raise
        else:
            self._succeeded()
        finally:
            if is_trial:
                self._trial_is_out = False

    def _admit(self) -> bool:
        is_trial = self.state is BreakerState.HALF_OPEN
        if self._opened_at is not None and (not is_trial or self._trial_is_out):
            left = self._opened_at + self._open_seconds - trio.current_time()
            raise LeftAlone("circuit breaker is open", seconds=max(TRIAL_SECONDS, left))
        if is_trial:
            self._trial_is_out = True
        return is_trial

    def _failed(self) -> None:
        self._failures += 1
        # A straggler that started before it opened does not keep it open for longer.
        if self._failures >= self._failures_to_open and self.state is not BreakerState.OPEN:
            self._opened_at = trio.current_time()

    def _succeeded(self) -> None:
        self._failures = 0
        self._opened_at = None
