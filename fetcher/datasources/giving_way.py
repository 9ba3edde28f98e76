"""A thread that reads and computes by turns, and lets the loop run in between.

A waiting thread asks for the interpreter's lock when it has waited for the switch interval (5 ms).
One that calls ``recv`` each millisecond, and finds that the bytes have come already, gives the lock
away and has it back before the waiting one is awake, and the wait begins anew: the loop may stand
still for 70 ms. A pause that is long enough for the other to wake ends that.
"""

import io
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

Buffer: TypeAlias = bytearray | memoryview

TURN_SECONDS: Final = 0.004
PAUSE_SECONDS: Final = 0.0001


class GivesWay:
    """To be called by one thread wherever it has just read from the network."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._since = self._clock()

    def __call__(self) -> None:
        """Pause for a moment when the last pause was a turn ago."""
        if self._clock() - self._since >= TURN_SECONDS:
            self._sleep(PAUSE_SECONDS)
            self._since = self._clock()


class RawReader(Protocol):
    def readinto(self, buffer: Buffer, /) -> int | None: ...

    def close(self) -> None: ...


class PoliteReader(io.RawIOBase):
    """An unbuffered reader that gives way; it owns the one that it reads from."""

    def __init__(self, raw: RawReader, gives_way: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._raw = raw
        self._gives_way = gives_way or GivesWay()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int | None:  # type: ignore[override] # any buffer
        received = self._raw.readinto(buffer)
        self._gives_way()
        return received

    def close(self) -> None:
        try:
            self._raw.close()
        finally:
            super().close()
