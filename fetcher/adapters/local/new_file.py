"""A file that was not there before, for its owner alone."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from fetcher.adapters.local.durable_files import sync_folder

FILE_MODE: Final = 0o600


@contextmanager
def new_private_file(path: Path) -> Generator[BinaryIO, None, None]:
    """Mode 0600, on the disk after leaving; by an exception nothing stays. Blocks.

    Raises OSError, also where something is there already.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            yield file
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
