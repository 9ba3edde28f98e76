"""One compressed archive of small files, for its owner alone."""

import io
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from fetcher.adapters.local.new_file import FILE_MODE, new_private_file


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """A ``.tar.gz`` with mode 0600. Blocks; raise OSError, also where something is there already.

    Nothing stays where it could not be written whole.
    """
    with (
        new_private_file(path) as file,
        tarfile.open(fileobj=file, mode="w:gz") as archive,
    ):
        for name, data in files.items():
            archive.addfile(_entry(name, data), io.BytesIO(data))


def _entry(name: str, data: bytes) -> tarfile.TarInfo:
    """Whoever unpacks it owns it, and nobody else reads it."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = FILE_MODE
    entry.mtime = int(time.time())
    return entry
