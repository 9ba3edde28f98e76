"""Messages appended to a file, one JSON line each (design section 8)."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import orjson
import structlog
import trio

from fetcher.adapters.local.durable_files import sync_folder
from fetcher.adapters.local.file_turnover import FileTurnover
from fetcher.domain.errors import PortUnavailable, StartRefused
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import OutgoingMessage

log = structlog.get_logger(__name__)

BLOCK_BYTES: Final = 64 * 1024
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MODE: Final = 0o600


class LocalEventLog:
    """MessagePublisher: publishing returns once the line is on the disk.

    A line is ``{"exchange", "routingKey", "headers", "body"}``. The body is a string, since the
    signature among the headers covers its exact bytes; byte-array headers are text. Open it with
    :func:`open_event_log`. A write cannot be abandoned: cancellation takes effect after it.

    Between two lines the file may be set aside under another name; whoever follows the name
    (``tail -F``) reads on in the new one. A file that somebody else moved away is made anew.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        *,
        turnover: FileTurnover | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._path = path
        self._descriptor = descriptor
        self._turnover = turnover
        self._max_bytes = max_bytes
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

    async def replace(self, rewrite: Callable[[], None]) -> None:
        """Let ``rewrite`` put another file under the name, in a thread; meanwhile nothing is
        appended, and the next line goes to that file. Raises OSError."""
        async with self._turn:
            await trio.to_thread.run_sync(self._replace, rewrite, limiter=self._thread)

    def _replace(self, rewrite: Callable[[], None]) -> None:
        self._cut_torn_line()
        rewrite()

    def _cut_torn_line(self) -> None:
        """Raises OSError."""
        if self._torn_at is not None:
            os.ftruncate(self._descriptor, self._torn_at)
            self._torn_at = None

    def _append(self, line: bytes) -> bool:
        try:
            self._cut_torn_line()
            size = self._room_for(len(line))
        except OSError:
            return False
        if size is None:
            return False
        try:
            remaining = memoryview(line)
            while remaining:
                remaining = remaining[os.write(self._descriptor, remaining) :]
            os.fsync(self._descriptor)
        except OSError:
            # The line may lie there in part: a full disk lets it be cut off at once, and where that
            # fails as well it is done before the next one is written.
            self._torn_at = size
            with suppress(OSError):
                self._cut_torn_line()
            return False
        return True

    def _room_for(self, growth: int) -> int | None:
        """Size of the file that takes so many bytes more, None where it is full."""
        if self._turnover is not None and self._turnover.is_due(
            os.fstat(self._descriptor), growth=growth
        ):
            aside = self._turnover.set_aside(self._path) if self._is_named() else None
            self._open_anew()
            if aside is not None:
                log.info("file_set_aside", file=aside.name)
                self._turnover.prune(self._path)
        elif not self._is_named():
            self._open_anew()
        size = os.fstat(self._descriptor).st_size
        if self._max_bytes is not None and size + growth > self._max_bytes:
            log.error("file_full", file=self._path.name, max_bytes=self._max_bytes)
            return None
        return size

    def _is_named(self) -> bool:
        """Whether the file's name still leads to what we write to."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def _open_anew(self) -> None:
        """Raises OSError; then the next line tries again."""
        fresh = os.open(self._path, _FLAGS, _MODE)
        old, self._descriptor = self._descriptor, fresh
        os.close(old)
        sync_folder(self._path.parent)

    def close(self) -> None:
        os.close(self._descriptor)


@asynccontextmanager
async def open_event_log(
    path: Path, *, turnover: FileTurnover | None = None, max_bytes: int | None = None
) -> AsyncGenerator[LocalEventLog, None]:
    """Open or create the file (mode 0600), without the torn last line that a crash may leave.

    With ``turnover`` it is set aside by size and time. With ``max_bytes`` it takes no more than
    that: publishing raises PortUnavailable. One process appends at a time: the data folder's lock
    sees to that. Raises StartRefused when the file cannot be opened.
    """
    descriptor = await trio.to_thread.run_sync(_open, path)
    if descriptor is None:
        raise StartRefused([f"FETCHER_DATA_DIR: {path.name} cannot be opened to be written"])
    opened = LocalEventLog(path, descriptor, turnover=turnover, max_bytes=max_bytes)
    try:
        yield opened
    finally:
        opened.close()


def _open(path: Path) -> int | None:
    try:
        descriptor = os.open(path, _FLAGS, _MODE)
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
