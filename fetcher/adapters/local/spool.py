"""Bytes that wait on disk for their turn: in files without a name, sealed (design section 5)."""

import errno
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import structlog
import trio
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fetcher.domain.errors import PortError, PortUnavailable
from fetcher_engine import SpoolFile, TenantContext

log = structlog.get_logger(__name__)

T = TypeVar("T")

CHUNK_BYTES: Final = 256 * 1024
"""The most that is sealed at once, and thus what a file holds in memory while it is read."""
TAG_BYTES: Final = 16
NONCE_BYTES: Final = 12
KEY_BITS: Final = 256
THREADS: Final = 4
ANSWER_SECONDS: Final = 10.0
"""A disk that takes longer for a piece hangs. Far above what a busy one needs, far below a job's
limit of time, which the wait must not use up.
"""
CLOSE_SECONDS: Final = 4.0
"""Below the 5 s that the Engine leaves for it."""


class SpoolUse:
    """What the files of one spool hold now, and how often the disk failed them."""

    def __init__(self) -> None:
        self.bytes = 0
        self.failures = 0


class FolderSpool:
    """Implements :class:`fetcher_engine.Spool` by unlinked files in one folder, mode 0600.

    Each file has a random key of its own that lies in memory only: what a crash leaves on the disk
    is free space with cipher text. File work and sealing run in at most 4 threads of their own; a
    cancellation abandons them, and so does each call after 10 s, the wait for a thread included: a
    disk that hangs holds no job.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.use = SpoolUse()
        self._threads = trio.CapacityLimiter(THREADS)

    async def open(
        self,
        tenant: TenantContext,  # noqa: ARG002 - a file is one run's alone
        max_bytes: int,
    ) -> SpoolFile:
        """Raise PortUnavailable."""
        file = _UnlinkedFile()
        try:
            await _in_thread(partial(file.create, self.folder), self._threads, self.use)
        except BaseException:
            file.close()
            raise
        return SealedQueue(file, threads=self._threads, max_bytes=max_bytes, use=self.use)

    async def check(self) -> None:
        """Raise PortUnavailable where no file can be made.

        Nothing is written: that a disk is full now says nothing of the next hour.
        """
        file = _UnlinkedFile()
        try:
            await _in_thread(partial(file.create, self.folder), self._threads, self.use)
        finally:
            file.close()


class SealedQueue:
    """Implements :class:`fetcher_engine.SpoolFile`; made by :meth:`FolderSpool.open`.

    Over its life it takes at most ``max_bytes``, which need 16 bytes more a chunk on disk. What was
    read is given back to the disk at the end only.
    """

    def __init__(
        self,
        file: "_UnlinkedFile",
        *,
        threads: trio.CapacityLimiter,
        max_bytes: int,
        use: SpoolUse,
    ) -> None:
        self._use = use
        self._on_disk = 0
        self._file = file
        self._threads = threads
        self._max_bytes = max_bytes
        self._cipher = AESGCM(AESGCM.generate_key(KEY_BITS))
        self._unread: deque[_Chunk] = deque()
        self._appended_bytes = 0
        self._appended_chunks = 0
        self._rest = b""
        self._takes_more = True

    async def append(self, data: bytes) -> None:
        """Raise PortUnavailable for a disk that is full or hangs, and beyond ``max_bytes``.

        After a call that failed on the disk or was cancelled, every other raises RuntimeError: its
        thread may still be writing chunks whose numbers must not be used twice.
        """
        if not self._takes_more:
            raise RuntimeError("an append is at work, or has failed")
        if self._appended_bytes + len(data) > self._max_bytes:
            raise PortUnavailable("the spool has taken all that it may")
        chunks = self._chunks_of(len(data))
        self._takes_more = False
        await _in_thread(partial(self._seal, data, chunks), self._threads, self._use)
        self._takes_more = True
        self._appended_bytes += len(data)
        self._appended_chunks += len(chunks)
        self._unread += chunks
        size = len(data) + len(chunks) * TAG_BYTES
        self._on_disk += size
        self._use.bytes += size

    async def read(self, max_bytes: int) -> bytes:
        """Raise PortError for bytes that are not what was written, PortUnavailable for the disk.

        RuntimeError where nothing is left.
        """
        if not self._rest:
            if not self._unread:
                raise RuntimeError("nothing is left to read")
            self._rest = await _in_thread(
                partial(self._unseal, self._unread[0]), self._threads, self._use
            )
            self._unread.popleft()
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return data

    async def aclose(self) -> None:
        """Close the file, or leave that to the abandoned thread that still uses it."""
        self._takes_more = False
        self._use.bytes -= self._on_disk
        self._on_disk = 0
        self._unread.clear()
        self._rest = b""
        # In a thread, since freeing 256 MiB keeps a disk busy; with a place that is always free,
        # since those of the spool may all hang.
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await trio.to_thread.run_sync(
                self._file.close, limiter=trio.CapacityLimiter(1), abandon_on_cancel=True
            )

    def _chunks_of(self, size: int) -> list["_Chunk"]:
        number = self._appended_chunks
        offset = self._appended_bytes + number * TAG_BYTES
        chunks: list[_Chunk] = []
        for start in range(0, size, CHUNK_BYTES):
            chunk = _Chunk(number, offset, min(CHUNK_BYTES, size - start))
            chunks.append(chunk)
            number += 1
            offset += chunk.size + TAG_BYTES
        return chunks

    def _seal(self, data: bytes, chunks: Sequence["_Chunk"]) -> None:
        start = 0
        with memoryview(data) as view, self._file.in_use() as descriptor:
            for chunk in chunks:
                plain = view[start : start + chunk.size]
                sealed = self._cipher.encrypt(chunk.nonce, plain, chunk.binding)
                _write_all(descriptor, sealed, chunk.offset)
                start += chunk.size

    def _unseal(self, chunk: "_Chunk") -> bytes:
        with self._file.in_use() as descriptor:
            sealed = _read_all(descriptor, chunk.size + TAG_BYTES, chunk.offset)
        with suppress(InvalidTag):
            return self._cipher.decrypt(chunk.nonce, sealed, chunk.binding)
        raise PortError("spooled bytes are not what was written")


@dataclass(frozen=True, slots=True)
class _Chunk:
    number: int
    offset: int
    size: int

    @property
    def nonce(self) -> bytes:
        """Used once: the key is the file's own, and a number is never given twice."""
        return self.number.to_bytes(NONCE_BYTES, "big")

    @property
    def binding(self) -> bytes:
        """Additional data: no chunk stands for another, nor for a shorter one."""
        return b"%d:%d" % (self.number, self.size)


class _UnlinkedFile:
    """A file whose closing waits for the threads that use it: for the last of them to let go.

    A descriptor closed under a thread would be another file's by the time it writes.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._file: FileIO | None = None
        self._users = 0
        self._is_given_up = False

    def create(self, folder: Path) -> None:
        """Raise OSError. Its name is gone at once, or there never was one (``O_TMPFILE``)."""
        with self._used():
            self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 - closed below

    @contextmanager
    def in_use(self) -> Iterator[int]:
        """The descriptor. Raise RuntimeError after ``close``."""
        with self._used():
            if self._file is None:
                raise RuntimeError("the spool file was never made")
            yield self._file.fileno()

    def close(self) -> None:
        """Idempotent. Blocks for no other thread."""
        with self._lock:
            self._is_given_up = True
        self._close_if_idle()

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._lock:
            if self._is_given_up:
                raise RuntimeError("the spool file is closed")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        file = None
        with self._lock:
            if self._is_given_up and not self._users:
                file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()


async def _in_thread(work: Callable[[], T], threads: trio.CapacityLimiter, use: SpoolUse) -> T:
    """An OSError becomes PortUnavailable by its number: its own text may hold a path."""
    code, problem = "timed_out", "timed out"
    try:
        with trio.move_on_after(ANSWER_SECONDS):
            return await trio.to_thread.run_sync(work, limiter=threads, abandon_on_cancel=True)
    except OSError as failure:
        number = failure.errno or 0
        code, problem = errno.errorcode.get(number, "unknown"), os.strerror(number)
    use.failures += 1
    log.warning("spool_failed", code=code)
    raise PortUnavailable(f"the spool failed: {problem}")


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    with memoryview(data) as view:
        written = 0
        while written < len(view):
            written += os.pwrite(descriptor, view[written:], offset + written)


def _read_all(descriptor: int, size: int, offset: int) -> bytes:
    """Fewer bytes than were asked for where the file ends before."""
    data = os.pread(descriptor, size, offset)
    while len(data) < size and (more := os.pread(descriptor, size - len(data), offset + len(data))):
        data += more
    return data
