"""The record store's clock, as this process knows it (design section 4, step 4)."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from fetcher.domain.times import cut_to_milliseconds

SAMPLE_SECONDS: Final = 30.0


class ServerClock:
    """A sample of the server's time, carried on by our monotonic clock.

    All processes write lease times of one clock this way, whatever their own wall clocks say. The
    times travel as literals, so that queries use their indexes. A sample is wrong by at most half
    of its round trip.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._server_time: datetime | None = None
        self._sampled_at = 0.0
        self._distrusted = False

    @property
    def is_stale(self) -> bool:
        old = self._monotonic() - self._sampled_at >= SAMPLE_SECONDS
        return self._server_time is None or self._distrusted or old

    def distrust(self) -> None:
        """The connection failed: another server, with another clock, may answer next."""
        self._distrusted = True

    def asking(self) -> float:
        """The moment at which the server is asked; to be handed to :meth:`answered`."""
        return self._monotonic()

    def answered(self, asked_at: float, server_time: datetime) -> None:
        self._sampled_at = (asked_at + self._monotonic()) / 2
        self._server_time = server_time
        self._distrusted = False

    def now(self) -> datetime:
        """The server's time in UTC, cut to milliseconds. Needs a sample."""
        if self._server_time is None:
            raise RuntimeError("the server's clock was not asked yet")
        passed = timedelta(seconds=self._monotonic() - self._sampled_at)
        return cut_to_milliseconds(self._server_time + passed)
