"""What a backup of the data folder says of itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.set_aside_names import set_aside_place

FORMAT: Final = 1
DATABASE: Final = "fetcher.db"
MASTER_KEY: Final = "master.key"
EVENTS: Final = "events.jsonl"
DEAD_LETTERS: Final = "dead-letters.jsonl"
OBJECTS: Final = "objects"
MAX_MANIFEST_BYTES: Final = 256 * 1024 * 1024
"""A million and a half of results."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class BackupFailed(Exception):
    """It could not be made or restored. The text is for the operator and names no secret."""


class BackupRejected(BackupFailed):
    """What lies there is not the backup that was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUpFile:
    path: str
    """Below the folder, with ``/`` between its parts."""
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    created_at: datetime
    version: str
    """Of the Fetcher that made it."""
    schema: int
    files: tuple[BackedUpFile, ...]
    missing: tuple[str, ...] = ()
    """Keys of results that the records name and the object folder did not have."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def holds_master_key(self) -> bool:
        return any(file.path == MASTER_KEY for file in self.files)


def manifest_document(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "createdAt": manifest.created_at.isoformat(),
        "version": manifest.version,
        "schema": manifest.schema,
        "missing": list(manifest.missing),
        "files": [
            {"path": file.path, "bytes": file.size_bytes, "sha256": file.sha256}
            for file in manifest.files
        ],
    }


def read_manifest(data: bytes) -> Manifest:
    """Raise BackupRejected for what is no manifest of a format that is known here."""
    document: object = None
    try:
        document = parse(data, max_depth=8)
    except JsonTextError:
        document = None
    if not isinstance(document, Mapping):
        raise BackupRejected("manifest.json: is no manifest")
    if document.get("format") != FORMAT:
        raise BackupRejected(f"manifest.json: its format is not {FORMAT}, the one known here")
    files = tuple(_file(entry) for entry in _list(document, "files"))
    paths = {file.path for file in files}
    if len(paths) != len(files) or DATABASE not in paths:
        raise BackupRejected("manifest.json: files: one is missing or stands there twice")
    return Manifest(
        created_at=_time(document.get("createdAt")),
        version=_text(document, "version"),
        schema=_count(document, "schema"),
        files=files,
        missing=tuple(str(key) for key in _list(document, "missing")),
    )


def _file(entry: object) -> BackedUpFile:
    if not isinstance(entry, Mapping):
        raise BackupRejected("manifest.json: files: an entry is no object")
    path, digest = _text(entry, "path"), _text(entry, "sha256")
    if not may_be_backed_up(path):
        raise BackupRejected("manifest.json: files: a path that no backup has")
    if not _DIGEST.fullmatch(digest):
        raise BackupRejected("manifest.json: files: sha256 is no digest")
    return BackedUpFile(path=path, size_bytes=_count(entry, "bytes"), sha256=digest)


def may_be_backed_up(path: str) -> bool:
    """Nothing but what a backup can hold, and nothing outside of the folder."""
    parts = path.split("/")
    if parts[0] != OBJECTS:
        is_named = path in (DATABASE, MASTER_KEY, EVENTS, DEAD_LETTERS)
        return is_named or set_aside_place(EVENTS, path) is not None
    plain = all(part not in ("", ".", "..", ".uploads") for part in parts)
    return len(parts) > 1 and plain and not set(path) & {"\\", "\0"}


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    if not isinstance(value, list):
        raise BackupRejected(f"manifest.json: {name}: is no array")
    return value


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise BackupRejected(f"manifest.json: {name}: is no text")
    return value


def _count(document: Mapping[str, Any], name: str) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BackupRejected(f"manifest.json: {name}: is no count")
    return value


def _time(value: object) -> datetime:
    time = None
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            time = None
    if time is None:
        raise BackupRejected("manifest.json: createdAt: is no time")
    return time
