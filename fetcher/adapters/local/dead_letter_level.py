"""How many dead letters lie in the embedded queue's file, and since when the first does."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import orjson
import trio

from fetcher.adapters.dead_letters import dead_since
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import DeadLetterLevel


class LocalDeadLetterLevels:
    """DeadLetterLevels. Each look reads what was appended since the one before; one at a time."""

    def __init__(self, path: Path, *, now: Callable[[], datetime]) -> None:
        self._path = path
        self._now = now
        self._turn = trio.Lock()
        self._identity: tuple[int, int] | None = None
        self._read_bytes = 0
        self._count = 0
        self._oldest_at: datetime | None = None

    async def level(self) -> DeadLetterLevel:
        async with self._turn:
            try:
                await trio.to_thread.run_sync(self._read_on)
            except OSError:
                raise PortUnavailable("the dead letters cannot be read") from None
            return DeadLetterLevel(messages=self._count, oldest_at=self._oldest_at)

    def _read_on(self) -> None:
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            self._start_anew(None)
            return
        with file:
            found = os.fstat(file.fileno())
            identity = found.st_dev, found.st_ino
            if identity != self._identity or found.st_size < self._read_bytes:
                self._start_anew(identity)
            file.seek(self._read_bytes)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is still being written
                if self._count == 0:
                    self._oldest_at = _time_of(line) or self._now()
                self._count += 1
                self._read_bytes += len(line)

    def _start_anew(self, identity: tuple[int, int] | None) -> None:
        self._identity = identity
        self._read_bytes = self._count = 0
        self._oldest_at = None


def _time_of(line: bytes) -> datetime | None:
    try:
        return dead_since(dict(orjson.loads(line)["headers"]))
    except (ValueError, KeyError, TypeError):
        return None
