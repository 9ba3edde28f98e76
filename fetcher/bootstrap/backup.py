"""A data folder's backup, made beside a running service, and its way back (decision 037)."""

import hmac
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from fetcher.adapters.local.backup_files import (
    NO_REGULAR_FILE,
    NotRegular,
    appearing_whole,
    facts_of,
    open_backed_up,
    open_regular,
    whole_lines,
    write_copy,
)
from fetcher.adapters.local.data_folder import LOCK_FILE, DataFolder, own_data_folder
from fetcher.adapters.local.durable_files import sync_folder
from fetcher.adapters.local.file_turnover import set_aside_files
from fetcher.adapters.sqlite.snapshot import check_database, copy_database, kept_results
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.crypto.keys import KeyRing
from fetcher.domain.backups import (
    DATABASE,
    DEAD_LETTERS,
    EVENTS,
    MASTER_KEY,
    MAX_MANIFEST_BYTES,
    OBJECTS,
    BackedUpFile,
    BackupFailed,
    BackupRejected,
    Manifest,
    manifest_document,
    may_be_backed_up,
    read_manifest,
)
from fetcher.domain.errors import StartRefused
from fetcher.settings import Settings

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.hmac"
_CONTEXT: Final = b"fetcher-backup-v1\n"
_MAX_SIGNATURE_BYTES: Final = 200


def make_backup(settings: Settings, target: Path, *, with_master_key: bool) -> Manifest:
    """Copy the data folder's parts. The records come first, so that everything that they name is
    there to be copied after them. Blocks; raise BackupFailed.
    """
    folder = settings.fetcher_data_dir
    if not settings.record_store_is_embedded:
        raise BackupFailed("the records lie in MongoDB: back that up, and the bucket")
    target = _outside(target, folder)
    keys = _keys(settings)
    if with_master_key and not DataFolder(folder).holds_master_key():
        raise BackupFailed(f"{folder} holds no master key: APP_ENC_KEY is yours to keep")
    with appearing_whole(target) as copy:
        schema = copy_database(folder / DATABASE, copy / DATABASE)
        files = [_facts(copy, DATABASE)]
        missing: list[str] = []
        if settings.object_store_is_embedded:
            for key in kept_results(copy / DATABASE):
                found = _copied(folder, f"{OBJECTS}/{key}", copy)
                if found is None:
                    missing.append(key)
                else:
                    files.append(found)
        files += _lines(DataFolder(folder), copy)
        if with_master_key:
            files += _present(_copied(folder, MASTER_KEY, copy))
        manifest = Manifest(
            created_at=utc_now(),
            version=settings.version,
            schema=schema,
            files=tuple(files),
            missing=tuple(missing),
        )
        _write_manifest(copy, manifest, keys)
    return manifest


def restore_backup(settings: Settings, source: Path) -> Manifest:
    """Bring a backup into an empty data folder; every byte is verified, or nothing stays.

    A ``master.key`` may lie in the folder already. Blocks. Raise BackupFailed, BackupRejected for
    what is not as it was made, StartRefused for a folder that is in use.
    """
    if not settings.record_store_is_embedded:
        raise BackupFailed("the records would lie in MongoDB: there is no folder to restore")
    if not os.path.lexists(source / MANIFEST):
        raise BackupFailed(f"{source / MANIFEST}: No such file or directory")
    data = _read(source, MANIFEST, MAX_MANIFEST_BYTES)
    signature = _read(source, SIGNATURE, _MAX_SIGNATURE_BYTES)
    manifest = read_manifest(data)
    with own_data_folder(settings.fetcher_data_dir) as folder:
        path = settings.fetcher_data_dir
        _refuse_what_lies_there(path, manifest)
        with _undone_unless_whole(folder, path):
            for file in manifest.files:
                _restore_file(source, path, file)
            _check_signature(_keys(settings), data, signature)
            if check_database(path / DATABASE) != manifest.schema:
                raise BackupRejected(f"{DATABASE}: is not of schema {manifest.schema}")
            _check_results(path, manifest, has_objects=settings.object_store_is_embedded)
    return manifest


def _keys(settings: Settings) -> KeyRing:
    problem = ""
    try:
        return existing_key_ring(settings)
    except StartRefused as refused:
        problem = "; ".join(refused.problems)
    raise BackupFailed(f"{problem} (put {MASTER_KEY} into the folder, or set APP_ENC_KEY)")


def _outside(target: Path, folder: Path) -> Path:
    """The target by the way that leads there without links and ``..``."""
    try:
        place, inside_of = target.resolve(), folder.resolve()
        # Python 3.13 resolves links that lead around in a circle to themselves,
        # before it was a RuntimeError
        with suppress(FileNotFoundError, NotADirectoryError):
            place.stat()
    except (OSError, RuntimeError):
        problem = "cannot be reached"
    else:
        if not place.is_relative_to(inside_of):
            return place
        problem = "lies inside of the data folder"
    raise BackupFailed(f"{target}: {problem}")


def _lines(folder: DataFolder, copy: Path) -> list[BackedUpFile]:
    """Events and dead letters. The newest file is opened before the others are listed: between
    the two it may be set aside, and would be missed. It need not be there, the others may be."""
    files: list[BackedUpFile] = []
    with _told_of(folder.events), _open_if_there(folder.events) as newest:
        for old in set_aside_files(folder.events):
            if newest is None or not _is_same(old, newest):
                files += _present(_copied(folder.path, old.name, copy))
        files += _present(_whole_lines_of(newest, EVENTS, copy))
    with _told_of(folder.dead_letters), _open_if_there(folder.dead_letters) as letters:
        files += _present(_whole_lines_of(letters, DEAD_LETTERS, copy))
    return files


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failed = _failed(path, error)
    else:
        return
    raise failed


@contextmanager
def _open_if_there(path: Path) -> Iterator[BinaryIO | None]:
    with ExitStack() as opened:
        file = None
        with suppress(FileNotFoundError):
            file = opened.enter_context(open_regular(path))
        yield file


def _whole_lines_of(file: BinaryIO | None, name: str, copy: Path) -> BackedUpFile | None:
    return write_copy(file, copy, name, size_bytes=whole_lines(file)) if file is not None else None


def _is_same(path: Path, file: BinaryIO) -> bool:
    """Also for one that is gone."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return True


def _copied(folder: Path, path: str, copy: Path) -> BackedUpFile | None:
    """None where it is not there (any more), as where no store would have put it."""
    if not may_be_backed_up(path):
        return None
    try:
        with open_regular(folder / path) as file:
            return write_copy(file, copy, path)
    except (FileNotFoundError, NotADirectoryError, NotRegular):
        return None
    except OSError as error:
        failed = _failed(Path(path), error)
    raise failed


def _present(file: BackedUpFile | None) -> list[BackedUpFile]:
    return [file] if file is not None else []


def _facts(folder: Path, path: str) -> BackedUpFile:
    try:
        return facts_of(folder, path)
    except OSError as error:
        failed = _failed(Path(path), error)
    raise failed


def _failed(path: Path, error: OSError) -> BackupFailed:
    why = NO_REGULAR_FILE if isinstance(error, NotRegular) else os.strerror(error.errno or 0)
    return BackupFailed(f"{path}: {why}")


def _write_manifest(folder: Path, manifest: Manifest, keys: KeyRing) -> None:
    data = orjson.dumps(manifest_document(manifest), option=orjson.OPT_INDENT_2)
    _check_that_it_can_be_read(data, manifest)
    try:
        for name, content in (
            (MANIFEST, data),
            (SIGNATURE, _sign(keys.current.internal_hmac, data).encode()),
        ):
            with os.fdopen(
                os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                file.write(content + b"\n" * (name == SIGNATURE))
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        failed = _failed(folder, error)
    else:
        return
    raise failed


def _check_that_it_can_be_read(data: bytes, manifest: Manifest) -> None:
    """A backup that no restore would take is told now, not on the day when it is needed."""
    problem = ""
    try:
        if len(data) > MAX_MANIFEST_BYTES:
            problem = f"{MANIFEST}: would be too large to be restored"
        elif read_manifest(data) != manifest:
            problem = f"{MANIFEST}: would not be read as it was written"
    except BackupRejected as rejected:
        problem = str(rejected)
    if problem:
        raise BackupFailed(problem)


def _sign(key: bytes, data: bytes) -> str:
    return hmac.new(key, _CONTEXT + data, sha256).hexdigest()


def _check_signature(keys: KeyRing, data: bytes, signature: bytes) -> None:
    told = signature.decode("ascii", errors="replace").strip().encode()
    if not any(
        hmac.compare_digest(_sign(each.internal_hmac, data).encode(), told) for each in keys
    ):
        raise BackupRejected(
            f"{MANIFEST}: was made with another master key than this one, or changed since"
        )


def _read(source: Path, name: str, max_bytes: int) -> bytes:
    with open_backed_up(source, name) as file:
        try:
            data = file.read(max_bytes + 1)
        except OSError as error:
            failed = _failed(source / name, error)
        else:
            if len(data) <= max_bytes:
                return data
            failed = BackupRejected(f"{name}: is too large")
    raise failed


def _refuse_what_lies_there(path: Path, manifest: Manifest) -> None:
    allowed = {LOCK_FILE} if manifest.holds_master_key else {LOCK_FILE, MASTER_KEY}
    found = sorted(entry.name for entry in path.iterdir() if entry.name not in allowed)
    if found:
        raise BackupFailed(f"{path}: is not empty: it holds {found[0]}")


@contextmanager
def _undone_unless_whole(folder: DataFolder, path: Path) -> Iterator[None]:
    """While the mark lies there no service starts on the folder, also after a crash."""
    before = {entry.name for entry in path.iterdir()}
    try:
        folder.restore_mark.touch(mode=0o600, exist_ok=False)
        sync_folder(path)
    except OSError as error:
        raise _failed(path, error) from None
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            for entry in path.iterdir():
                if entry.name in before or entry == folder.restore_mark:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
        folder.restore_mark.unlink(missing_ok=True)
        sync_folder(path)


def _restore_file(source: Path, path: Path, file: BackedUpFile) -> None:
    with open_backed_up(source, file.path) as original:
        try:
            # One byte more than it should have is enough to tell.
            copied = write_copy(original, path, file.path, size_bytes=file.size_bytes + 1)
        except OSError as error:
            failed = _failed(Path(file.path), error)
        else:
            if copied == file:
                return
            failed = BackupRejected(f"{file.path}: is not what was backed up")
    raise failed


def _check_results(path: Path, manifest: Manifest, *, has_objects: bool) -> None:
    if not has_objects:
        return
    there = {file.path for file in manifest.files} | {f"{OBJECTS}/{k}" for k in manifest.missing}
    for key in kept_results(path / DATABASE):
        if f"{OBJECTS}/{key}" not in there:
            raise BackupRejected(f"{OBJECTS}/{key}: its record says that it is stored")
