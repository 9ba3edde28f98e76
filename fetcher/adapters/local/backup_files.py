"""Files of a backup: copied with their digest, private, and durable when that is said."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from fetcher.adapters.local.durable_files import make_folders, sync_folder
from fetcher.domain.backups import BackedUpFile, BackupFailed, BackupRejected

BLOCK_BYTES: Final = 1024 * 1024
NO_REGULAR_FILE: Final = "is no regular file"
FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


class NotRegular(OSError):
    """What lies there is a folder, a pipe or a device."""


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Raises OSError, also for a link (ELOOP), NotRegular for what is no file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(errno.EINVAL, NO_REGULAR_FILE)
    with os.fdopen(descriptor, "rb") as file:
        yield file


@contextmanager
def open_backed_up(folder: Path, path: str) -> Iterator[BinaryIO]:
    """A part of a backup. Raise BackupRejected where it is missing, or is no file that a backup
    holds; BackupFailed where it cannot be read."""
    problem: BackupFailed | None = None
    with ExitStack() as opened:
        try:
            # A link on the way would lead out of the backup as well as one at its end.
            for parent in Path(path).parents[:-1]:
                if (folder / parent).is_symlink():
                    raise NotRegular(errno.EINVAL, NO_REGULAR_FILE)
            file = opened.enter_context(open_regular(folder / path))
        except OSError as error:
            problem = _not_opened(path, error)
        else:
            yield file
    if problem is not None:
        raise problem


def _not_opened(path: str, error: OSError) -> BackupFailed:
    if isinstance(error, NotRegular) or error.errno == errno.ELOOP:
        return BackupRejected(f"{path}: {NO_REGULAR_FILE}")
    text = f"{path}: {os.strerror(error.errno or 0)}"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO):
        return BackupRejected(text)
    return BackupFailed(text)


def write_copy(
    source: BinaryIO, folder: Path, path: str, *, size_bytes: int | None = None
) -> BackedUpFile:
    """Copy it, or so many bytes of it, to this path below the folder; what was written.

    Raises OSError, FileExistsError where something lies there.
    """
    target = folder.joinpath(*path.split("/"))
    make_folders(target.parent, below=folder, mode=FOLDER_MODE)
    digest, written = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, FILE_MODE), "wb") as copy:
        while size_bytes is None or written < size_bytes:
            wanted = BLOCK_BYTES if size_bytes is None else min(BLOCK_BYTES, size_bytes - written)
            block = source.read(wanted)
            if not block:
                break
            copy.write(block)
            digest.update(block)
            written += len(block)
        copy.flush()
        os.fsync(copy.fileno())
    sync_folder(target.parent)
    return BackedUpFile(path=path, size_bytes=written, sha256=digest.hexdigest())


def facts_of(folder: Path, path: str) -> BackedUpFile:
    """Of a file that lies there already. Raises OSError."""
    digest, size = hashlib.sha256(), 0
    with open_regular(folder / path) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
        os.fsync(file.fileno())
    return BackedUpFile(path=path, size_bytes=size, sha256=digest.hexdigest())


def whole_lines(file: BinaryIO) -> int:
    """How many bytes of it are whole lines now: the last one may still be being written."""
    end = os.fstat(file.fileno()).st_size
    while end > 0:
        start = max(0, end - BLOCK_BYTES)
        newline = os.pread(file.fileno(), end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


@contextmanager
def appearing_whole(target: Path) -> Iterator[Path]:
    """A private folder that gets its name when it is left without an error, else is removed.

    Raise BackupFailed where something lies under the name.
    """
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    problem = ""
    try:
        if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
            problem = "there is something already"
        else:
            target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            partial.mkdir(mode=FOLDER_MODE)
    except OSError as error:
        problem = os.strerror(error.errno or 0)
    if problem:
        raise BackupFailed(f"{target}: {problem}")
    try:
        yield partial
        try:
            sync_folder(partial)
            partial.rename(target)
            sync_folder(target.parent)
        except OSError as error:
            raise BackupFailed(f"{target}: {os.strerror(error.errno or 0)}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
