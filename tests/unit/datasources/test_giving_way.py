"""A thread that reads and computes by turns pauses, so that the loop has its turn as well."""

import io
from dataclasses import dataclass, field

from fetcher.datasources.giving_way import PAUSE_SECONDS, GivesWay, PoliteReader

COMPUTED_SECONDS = 0.0015
"""Between two reads: much less than what a waiting thread waits for before it asks."""


@dataclass
class Work:
    """The clock of a thread whose every read is followed by some computing."""

    now: float = 100.0
    paused_at: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds == PAUSE_SECONDS
        self.paused_at.append(round(self.now, 4))
        self.now += seconds


class Pieces:
    """A socket that gives so many bytes at a time, each with the work that comes of it."""

    def __init__(self, data: bytes, work: Work) -> None:
        self._data = io.BytesIO(data)
        self._work = work
        self.is_closed = False

    def readinto(self, buffer: bytearray | memoryview) -> int:
        self._work.now += COMPUTED_SECONDS
        return self._data.readinto(memoryview(buffer)[:10])

    def close(self) -> None:
        self.is_closed = True


def test_a_thread_pauses_once_a_turn_of_four_milliseconds() -> None:
    work = Work()
    gives_way = GivesWay(work.clock, work.sleep)
    for _ in range(9):
        work.now += COMPUTED_SECONDS
        gives_way()
    assert work.paused_at == [100.0045, 100.0091, 100.0137]


def test_a_reader_gives_all_bytes_and_pauses_between_them() -> None:
    work = Work()
    pieces = Pieces(bytes(range(100)), work)
    reader = io.BufferedReader(PoliteReader(pieces, GivesWay(work.clock, work.sleep)), 16)
    assert [reader.read(4), reader.read(40), reader.read(100)] == [
        bytes(range(4)),
        bytes(range(4, 44)),
        bytes(range(44, 100)),
    ]
    assert work.paused_at == [100.0045, 100.0091, 100.0137, 100.0183]
    reader.close()
    assert pieces.is_closed
