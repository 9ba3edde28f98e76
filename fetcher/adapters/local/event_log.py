"""Messages appended to a file, one JSON line each (design section 8)."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import orjson
import trio

from fetcher.adapters.local.durable_files import sync_folder
from fetcher.domain.errors import PortUnavailable, StartRefused
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import OutgoingMessage

BLOCK_BYTES: Final = 64 * 1024


class LocalEventLog:
    """MessagePublisher: publishing returns once the line is on the disk.

    A line is ``{"exchange", "routingKey", "headers", "body"}``. The body is a string, since the
    signature among the headers covers its exact bytes; byte-array headers are text. Open it with
    :func:`open_event_log`. A write cannot be abandoned: cancellation takes effect after it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = trio.Lock()
        self._thread = trio.CapacityLimiter(1)
        self._torn_at: int | None = None

    async def publish(self, message: OutgoingMessage) -> None:
        line = orjson.dumps(
            {
                "exchange": message.exchange,
                "routingKey": message.routing_key,
                "headers": _headers_as_text(message.headers),
                "body": message.body.decode(),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        async with self._turn:
            written = await trio.to_thread.run_sync(self._append, line, limiter=self._thread)
        if not written:
            raise PortUnavailable("the event log cannot be written")

    def _append(self, line: bytes) -> bool:
        try:
            if self._torn_at is not None:
                os.ftruncate(self._descriptor, self._torn_at)
                self._torn_at = None
            size = os.fstat(self._descriptor).st_size
        except OSError:
            return False
        try:
            remaining = memoryview(line)
            while remaining:
                remaining = remaining[os.write(self._descriptor, remaining) :]
            os.fsync(self._descriptor)
        except OSError:
            # The line may lie there in part: it is cut off before the next one is written.
            self._torn_at = size
            return False
        return True


@asynccontextmanager
async def open_event_log(path: Path) -> AsyncGenerator[LocalEventLog, None]:
    """Open or create the file (mode 0600), without the torn last line that a crash may leave.

    One process appends at a time: the data folder's lock sees to that. Raises StartRefused when
    the file cannot be opened.
    """
    descriptor = await trio.to_thread.run_sync(_open, path)
    if descriptor is None:
        raise StartRefused([f"FETCHER_DATA_DIR: {path.name} cannot be opened to be written"])
    try:
        yield LocalEventLog(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        end = _end_of_last_whole_line(descriptor)
        if end != os.fstat(descriptor).st_size:
            os.ftruncate(descriptor, end)
        os.fsync(descriptor)
        sync_folder(path.parent)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _end_of_last_whole_line(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - BLOCK_BYTES)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _headers_as_text(headers: Mapping[str, HeaderValue]) -> dict[str, str | int]:
    return {
        name: value.decode() if isinstance(value, bytearray) else value
        for name, value in headers.items()
    }
