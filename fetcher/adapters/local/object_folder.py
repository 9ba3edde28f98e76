"""Objects as files under a folder (design section 8)."""

import hashlib
import os
import secrets
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

import trio

from fetcher.adapters.local.durable_files import make_folders, sync_folder
from fetcher.domain.errors import ObjectNotFound, OperationRefused, PortUnavailable, StartRefused
from fetcher.ports import Probe, ProbeResult, ProbeStatus, Upload

T = TypeVar("T")

UPLOADS_FOLDER: Final = ".uploads"
BUFFER_BYTES: Final = 1024 * 1024
READ_BYTES: Final = 1024 * 1024
THREADS: Final = 4
MIN_FREE_BYTES: Final = 64 * 1024 * 1024
MAX_NAME_BYTES: Final = 255
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600


class FolderObjectStore:
    """ObjectStore: a temporary file, fsync, rename, fsync of the folder.

    Open it with :func:`open_object_folder`. Keys are the same as in S3; one that is absolute, has
    an empty, ``.``, ``..`` or too long part, a backslash or a NUL, or lies among the unfinished
    uploads is a ValueError. File work runs in at most 4 threads of its own and cannot be abandoned:
    cancellation takes effect after the step at hand.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._threads = trio.CapacityLimiter(THREADS)

    @asynccontextmanager
    async def upload(self, key: str) -> AsyncGenerator[Upload, None]:
        target = self._path(key)
        temporary = self._root / UPLOADS_FOLDER / f"{_digest(key)}.{secrets.token_hex(8)}"
        descriptor = await self._run(lambda: _create(temporary))
        writer = _FileUpload(
            run=self._run,
            descriptor=descriptor,
            publish=lambda: self._publish(temporary, target),
        )
        try:
            yield writer
        finally:
            # Local and short; a disk that hangs here cannot be given up on in any case.
            with trio.CancelScope(shield=True):
                await self._run(lambda: _discard(descriptor, temporary))

    @asynccontextmanager
    async def read(self, key: str) -> AsyncGenerator[AsyncIterator[bytes], None]:
        path = self._path(key)
        descriptor = await self._run(lambda: _open_to_read(path))
        if descriptor is None:
            raise ObjectNotFound(f"object not found: {key}")
        try:
            yield _FileChunks(self._run, descriptor)
        finally:
            os.close(descriptor)

    async def size(self, key: str) -> int | None:
        path = self._path(key)
        return await self._run(lambda: _size(path))

    async def delete(self, key: str) -> None:
        path = self._path(key)
        if not await self._run(lambda: self._delete(path, prefix=f"{_digest(key)}.")):
            raise OperationRefused("the object folder refused the deletion")

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:  # noqa: ARG002 - the port's
        """None: nobody but this process serves the folder."""
        return None

    def probe(self) -> Probe:
        """The ``object_store`` entry of readiness: writable, with 64 MiB free."""

        async def check() -> ProbeResult:
            try:
                error = await self._run(lambda: _write_something(self._root / UPLOADS_FOLDER))
            except PortUnavailable:
                error = "object folder is not writable"
            status = ProbeStatus.UP if error is None else ProbeStatus.DOWN
            return ProbeResult(status=status, error=error)

        return Probe(name="object_store", timeout_seconds=2.0, check=check)

    async def _run(self, work: Callable[[], T]) -> T:
        """File work in a thread; an OSError out of it is PortUnavailable."""
        try:
            return await trio.to_thread.run_sync(work, limiter=self._threads)
        except OSError:
            pass
        raise PortUnavailable("the object folder failed")

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        is_plain = all(part not in {"", ".", ".."} for part in parts)
        is_short = all(len(part.encode()) <= MAX_NAME_BYTES for part in parts)
        if not is_plain or not is_short or parts[0] == UPLOADS_FOLDER or set(key) & {"\\", "\0"}:
            raise ValueError("an object key must stay inside the object folder")
        return self._root.joinpath(*parts)

    def _publish(self, temporary: Path, target: Path) -> None:
        make_folders(target.parent, below=self._root, mode=FOLDER_MODE)
        temporary.rename(target)
        sync_folder(target.parent)

    def _delete(self, path: Path, *, prefix: str) -> bool:
        """False where this one must stay, which tells nothing of the others."""
        for unfinished in (self._root / UPLOADS_FOLDER).glob(f"{prefix}*"):
            unfinished.unlink(missing_ok=True)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (PermissionError, IsADirectoryError):
            return False
        sync_folder(path.parent)
        return True


@asynccontextmanager
async def open_object_folder(root: Path) -> AsyncGenerator[FolderObjectStore, None]:
    """Create the folder (mode 0700) where there is none; remove what a crash left unfinished.

    One process uses the folder at a time: the data folder's lock sees to that. Raises StartRefused
    when the folder cannot be prepared.
    """
    if not await trio.to_thread.run_sync(_prepare, root):
        raise StartRefused([f"FETCHER_DATA_DIR: {root.name}/ cannot be made or written"])
    yield FolderObjectStore(root)


class _Run(Protocol):
    async def __call__(self, work: Callable[[], T], /) -> T: ...


class _FileUpload:
    def __init__(self, *, run: _Run, descriptor: int, publish: Callable[[], None]) -> None:
        self._run = run
        self._descriptor = descriptor
        self._publish = publish
        self._buffer = bytearray()
        self._written = 0
        self._is_open = True

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self._check_open()
        if len(self._buffer) + len(chunk) < BUFFER_BYTES:
            self._buffer += chunk
            return
        with memoryview(chunk).cast("B") as view:
            for start in range(0, len(view), BUFFER_BYTES):
                self._buffer += view[start : start + BUFFER_BYTES]
                if len(self._buffer) >= BUFFER_BYTES:
                    await self._flush()

    @property
    def may_appear_late(self) -> bool:
        """A step that has begun is waited for, and a process's end ends it."""
        return False

    async def complete(self) -> int:
        self._check_open()
        await self._flush()
        self._is_open = False
        await self._run(self._finish)
        return self._written

    async def _flush(self) -> None:
        full, self._buffer = self._buffer, bytearray()
        # Closed meanwhile: an upload that lost bytes here must never be completed.
        self._is_open = False
        await self._run(lambda: _write_all(self._descriptor, full))
        self._is_open = True
        self._written += len(full)

    def _finish(self) -> None:
        os.fsync(self._descriptor)
        self._publish()

    def _check_open(self) -> None:
        if not self._is_open:
            raise RuntimeError("this upload was completed or has failed")


class _FileChunks:
    def __init__(self, run: _Run, descriptor: int) -> None:
        self._run = run
        self._descriptor = descriptor

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._run(lambda: os.read(self._descriptor, READ_BYTES))
        if not chunk:
            raise StopAsyncIteration
        return chunk


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _prepare(root: Path) -> bool:
    uploads = root / UPLOADS_FOLDER
    try:
        uploads.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        root.chmod(FOLDER_MODE)
        for unfinished in uploads.iterdir():
            unfinished.unlink()
        sync_folder(root)
    except OSError:
        return False
    return True


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)


def _write_all(descriptor: int, data: bytearray) -> None:
    with memoryview(data) as view:
        written = 0
        while written < len(view):
            written += os.write(descriptor, view[written:])


def _discard(descriptor: int, temporary: Path) -> None:
    os.close(descriptor)
    with suppress(OSError):  # what stays behind here is removed when the folder is opened
        temporary.unlink(missing_ok=True)


def _open_to_read(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _size(path: Path) -> int | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _write_something(folder: Path) -> str | None:
    path = folder / f"probe.{secrets.token_hex(8)}"
    descriptor = _create(path)
    try:
        _write_all(descriptor, bytearray(b"probe"))
    finally:
        _discard(descriptor, path)
    room = os.statvfs(folder)
    return None if room.f_bavail * room.f_frsize >= MIN_FREE_BYTES else "less than 64 MiB free"
