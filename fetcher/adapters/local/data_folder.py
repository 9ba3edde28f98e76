"""The data folder of the embedded default: one process owns it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fetcher.adapters.local.durable_files import sync_folder
from fetcher.crypto.keys import generate_master_key
from fetcher.domain.errors import StartRefused

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
LOCK_FILE: Final = "lock"
MASTER_KEY_FILE: Final = "master.key"
SPOOL_FOLDER: Final = "spool"
_MAX_HOLDER_BYTES: Final = 200
_MAX_KEY_BYTES: Final = 64 * 1024


class DataFolder:
    """What lies where. Made by :func:`own_data_folder`; short, blocking file work at start."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def database(self) -> Path:
        return self.path / "fetcher.db"

    @property
    def objects(self) -> Path:
        return self.path / "objects"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def dead_letters(self) -> Path:
        return self.path / "dead-letters.jsonl"

    @property
    def restore_mark(self) -> Path:
        """Lies there while a backup is being restored: nothing else may use the folder then."""
        return self.path / "restore.unfinished"

    def make_sources(self) -> Path:
        """Where SQLite sources lie unless ``DATASOURCE_SQLITE_DIR`` says otherwise.

        Raises StartRefused when it cannot be made.
        """
        return self._made("sources")

    def make_spool(self) -> Path:
        """Where the spool's unnamed files lie unless ``SPOOL_DIR`` says otherwise.

        Raises StartRefused when it cannot be made.
        """
        return self._made(SPOOL_FOLDER)

    def holds_master_key(self) -> bool:
        return (self.path / MASTER_KEY_FILE).exists()

    def master_key(self) -> tuple[str, bool]:
        """The text of ``master.key`` and whether it was created just now (mode 0600, durably).

        Whether it is a usable key is judged where every master key is. Raises StartRefused when it
        can neither be read nor created.
        """
        path = self.path / MASTER_KEY_FILE
        with suppress(FileNotFoundError):
            return _read_text(path), False
        key = generate_master_key()
        _create_durably(path, key)
        return key, True

    def _made(self, name: str) -> Path:
        folder = self.path / name
        try:
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        except OSError as error:
            problem = f"FETCHER_DATA_DIR: {folder}: {os.strerror(error.errno or 0)}"
        else:
            return folder
        raise StartRefused([problem])


@contextmanager
def own_data_folder(path: Path) -> Iterator[DataFolder]:
    """Create the folder (mode 0700) and hold its lock; the kernel frees it with the process.

    Raises StartRefused when another process holds it, naming that process, when a restore has
    ended halfway, or when the folder cannot be used.
    """
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        descriptor = os.open(
            path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE
        )
    except OSError as error:
        raise StartRefused([f"FETCHER_DATA_DIR: {path}: {os.strerror(error.errno or 0)}"]) from None
    try:
        if not _lock(descriptor):
            raise StartRefused([f"FETCHER_DATA_DIR: {path} is in use by {_holder(descriptor)}"])
        folder = DataFolder(path)
        if folder.restore_mark.exists():
            problem = "a restore did not end: empty the folder and restore again"
            raise StartRefused([f"FETCHER_DATA_DIR: {path}: {problem}"])
        _name_holder(descriptor, path)
        yield folder
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _name_holder(descriptor: int, path: Path) -> None:
    """Raises StartRefused: a disk that has no room for this has none for anything."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
    except OSError as error:
        problem = f"FETCHER_DATA_DIR: {path}: {os.strerror(error.errno or 0)}"
    else:
        return
    raise StartRefused([problem])


def _holder(descriptor: int) -> str:
    """What the holder wrote about itself; another process may have written anything there."""
    text = os.pread(descriptor, _MAX_HOLDER_BYTES, 0).decode(errors="replace").strip()
    return text if text.isprintable() and text else "another process"


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_KEY_BYTES).decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StartRefused([f"{path}: {os.strerror(error.errno or 0)}"]) from None


def _create_durably(path: Path, text: str) -> None:
    """The file is there whole or not at all, whenever the power goes."""
    temporary = path.with_suffix(".new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(f"{text}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StartRefused([f"{path}: {os.strerror(error.errno or 0)}"]) from None
