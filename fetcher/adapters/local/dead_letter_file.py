"""The dead letters of the embedded queue: lines of a file (:mod:`.event_log` writes them)."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import orjson
import structlog
import trio

from fetcher.adapters.dead_letters import read_dead_letter
from fetcher.adapters.local.durable_files import sync_folder
from fetcher.adapters.local.event_log import LocalEventLog
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import PortUnavailable

log = structlog.get_logger(__name__)

PAGE_BYTES: Final = 8 * 1024 * 1024
WRITE_SECONDS: Final = 10.0
UNREADABLE: Final = "unreadable_line"


class LocalDeadLetterQueue:
    """DeadLetterQueue over the file. Removing takes the data folder's lock, which the caller holds.

    ``log`` is what the caller's own service appends to the file; beside another's nothing may be
    removed.
    """

    def __init__(self, path: Path, log: LocalEventLog | None = None) -> None:
        self._path = path
        self._log = log

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["LocalDeadLetterWindow", None]:
        """What was removed is gone from the disk after leaving, also by an exception or a cancel:
        then a file that cannot be written is logged, and those letters lie there still. Raises
        PortUnavailable."""
        try:
            file = await trio.to_thread.run_sync(_open, self._path)
            total = await trio.to_thread.run_sync(_count, file) if file is not None else 0
        except OSError:
            raise PortUnavailable("the dead letters cannot be read") from None
        try:
            window = LocalDeadLetterWindow(file, total)
            try:
                yield window
            except BaseException:
                try:
                    await self._write(file, window)
                except PortUnavailable:
                    log.warning("removed_dead_letters_kept", count=len(window.removed))
                raise
            await self._write(file, window)
        finally:
            if file is not None:
                file.close()

    async def _write(self, file: BinaryIO | None, window: "LocalDeadLetterWindow") -> None:
        """Whatever cancels the caller: others were told that these are gone."""
        if not window.removed or file is None:
            return
        rewrite = partial(_rewrite, self._path, file, window.removed)
        try:
            # A thread that writes is awaited: the time is for those who write before us.
            with trio.CancelScope(shield=True), trio.fail_after(WRITE_SECONDS):
                if self._log is None:
                    await trio.to_thread.run_sync(rewrite)
                else:
                    await self._log.replace(rewrite)
        except (OSError, trio.TooSlowError):
            raise PortUnavailable("the dead letters cannot be written") from None
        window.gone = len(window.removed)

    async def survives_looks(self) -> bool:
        """Lines of a file are only read."""
        await trio.lowlevel.checkpoint()
        return True


class LocalDeadLetterWindow:
    """DeadLetterWindow: a letter's tag is its line's place in the file."""

    def __init__(self, file: BinaryIO | None, total: int) -> None:
        self._file = file
        self._left = total
        self.total = total
        self.removed: set[int] = set()
        self.gone = 0

    async def next_page(self, *, limit: int) -> list[DeadLetter]:
        file = self._file
        if file is None:
            return []
        count = min(limit, self._left)
        try:
            page = await trio.to_thread.run_sync(_read_page, file, count)
        except OSError:
            raise PortUnavailable("the dead letters cannot be read") from None
        self._left -= len(page)
        return page

    async def remove(self, letters: Sequence[DeadLetter]) -> None:
        await trio.lowlevel.checkpoint()
        self.removed.update(letter.tag for letter in letters)


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _count(file: BinaryIO) -> int:
    """Whole lines: one without its end is still being written."""
    total = sum(1 for line in file if line.endswith(b"\n"))
    file.seek(0)
    return total


def _read_page(file: BinaryIO, count: int) -> list[DeadLetter]:
    page: list[DeadLetter] = []
    size = 0
    while len(page) < count and size < PAGE_BYTES:
        tag = file.tell()
        line = file.readline()
        if not line.endswith(b"\n"):
            break
        size += len(line)
        page.append(_letter(tag, line))
    return page


def _letter(tag: int, line: bytes) -> DeadLetter:
    try:
        document = orjson.loads(line)
        return read_dead_letter(
            tag=tag, body=document["body"].encode(), headers=dict(document["headers"])
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return DeadLetter(
            tag=tag, body=line, headers={}, exchange="", routing_key="", reason=UNREADABLE
        )


def _rewrite(path: Path, file: BinaryIO, removed: set[int]) -> None:
    """The file without these lines: whole or as it was, whenever the power goes."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    file.seek(0)
    with os.fdopen(descriptor, "wb") as kept:
        tag = 0
        for line in file:
            if tag not in removed:
                kept.write(line)
            tag += len(line)
        kept.flush()
        os.fsync(kept.fileno())
    temporary.rename(path)
    sync_folder(path.parent)
